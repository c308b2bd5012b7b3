import { createHash, randomBytes } from "node:crypto";
import { BrigError } from "../errors.js";
import { TOKEN_BYTES } from "./channel/protocol.js";
import { type LinkOptions, RunnerLink } from "./channel/runner-link.js";
import { proveLink } from "./connect-and-prove.js";
import type { ExecStream } from "./docker/engine-types.js";
import type { OpenedSandbox } from "./open-sandbox.js";
import { runnerPath } from "./plan/create-body.js";
import type { SandboxPlan } from "./plan/plan.js";
import { endedRunner } from "./process/ended-container.js";
import { openedSandboxOf, type Sandbox, sandboxFrom } from "./sandbox.js";

/** The link asks again about a silent stream every two seconds. */
const SILENCE_GAP_MS = 30_000;
const SILENCE_MAX_MS = 20_000;

/** The user that commands run as, and their HOME. */
export interface SecondUser {
  uid: number;
  gid: number;
  home: string;
}

/** Disposing of it ends what runs by it, and leaves the container alone. */
export interface SecondSandbox extends Disposable {
  readonly sandbox: Sandbox;
}

/**
 * Opens another sandbox in the container of one, whose commands run as another user. The engine starts its runner, which nothing in
 * the container can prevent or imitate, so whoever opens it decides what may already run there. Everything but the user is as
 * planned for the first sandbox, and is proved again. Its one stream is not opened again when it breaks. Errors: those of the
 * engine, `policy.not-enforced`.
 */
export async function openBeside(sandbox: Sandbox, { uid, gid, home }: SecondUser): Promise<SecondSandbox> {
  const opened = openedSandboxOf(sandbox);
  const { engine, containerId } = opened;
  const plan = { ...opened.plan, user: { uid, gid }, home };
  const token = randomBytes(TOKEN_BYTES);
  const runner = await engine.openExec(containerId, runnerArguments(plan, token), { user: `${uid}:${gid}` });
  const link = await RunnerLink.open({
    token,
    first: runner,
    dial: () => Promise.reject(runnerEnded()),
    diagnose: diagnosis(opened, runner),
    reconnectForMs: 0,
    onLate: () => undefined,
  });
  try {
    const { imageId } = opened.proof;
    const { proof } = await proveLink(link, { plan, engine, imageId });
    const restart = () => Promise.reject(new TypeError("only the container's first runner is started again"));
    const release = async () => undefined;
    return {
      sandbox: sandboxFrom({ ...opened, plan, link, proof, release, restart, tree: null, branch: null }),
      [Symbol.dispose]: () => void link.end(runnerEnded()),
    };
  } catch (error) {
    link.end(runnerEnded());
    throw error;
  }
}

function runnerArguments(plan: SandboxPlan, token: Buffer): string[] {
  const hash = createHash("sha256").update(token).digest("hex");
  return [
    ...[runnerPath(plan), "serve", "--token-hash", hash, "--lease", String(plan.leaseSeconds)],
    ...["--first-stream", "stdio", "--bridges", "none"],
  ];
}

/**
 * Tells why the stream is broken or silent. Something in the container may have stopped the runner, which not every call has a time
 * limit against. So it has to answer soon while PID 1 does, which nothing in the container can stop.
 */
function diagnosis({ diagnose, link }: OpenedSandbox, runner: ExecStream): LinkOptions["diagnose"] {
  let silentFrom = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async (brokenForMs) => {
    const container = await diagnose({ leaseIsOver: false, wasRefused: brokenForMs > 0 });
    if (container !== "runs") return container;
    const { running, exitCode } = await runner.inspect();
    if (!running) return endedRunner(exitCode) ?? runnerEnded();
    if (brokenForMs > 0) return runnerEnded();
    await link.ping();
    const now = performance.now();
    if (now - askedAt > SILENCE_GAP_MS) silentFrom = now;
    askedAt = now;
    return now - silentFrom < SILENCE_MAX_MS ? "paused" : runnerEnded();
  };
}

function runnerEnded(): BrigError {
  return new BrigError("the runner beside the sandbox's own has ended", {
    code: "sandbox.gone",
    reason: "killed",
    hint: "something in the container may have killed it; create another sandbox",
  });
}
