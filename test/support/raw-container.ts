import { createHash, randomBytes } from "node:crypto";
import { finished } from "node:stream/promises";
import { BrigError } from "../../src/errors.js";
import { Demultiplexer } from "../../src/sandbox/channel/frames.js";
import { RunnerLink } from "../../src/sandbox/channel/runner-link.js";
import { openBridge } from "../../src/sandbox/connect-and-prove.js";
import type { ContainerBody, Engine } from "../../src/sandbox/docker/engine-types.js";
import { readReport } from "../../src/sandbox/files/files.js";
import { requireToolbox } from "../../src/sandbox/images/require-toolbox.js";
import { createContainerBody } from "../../src/sandbox/plan/create-body.js";
import { preparePlaceholders } from "../../src/sandbox/plan/placeholders.js";
import type { SandboxPlan } from "../../src/sandbox/plan/plan.js";
import { loadSeccompProfile } from "../../src/sandbox/policy/policy-directory.js";
import { type KernelReport, parseReport } from "../../src/sandbox/proof/kernel-report.js";
import { testLabels } from "./test-run.js";

/** The container of a plan without the sandbox around it, so that its body can be made weaker than the plan. */
export interface RawContainer extends AsyncDisposable {
  readonly id: string;
  /** What the kernel says inside, whether or not it is what the plan promised. */
  report(): Promise<KernelReport>;
  /** Over the engine's own exec; stdout and stderr in one. */
  exec(argv: string[], user?: string): Promise<{ exitCode: number | null; output: string }>;
}

export async function startRawContainer(
  engine: Engine,
  plan: SandboxPlan,
  weaken: (body: ContainerBody) => void = () => undefined,
): Promise<RawContainer> {
  const token = randomBytes(32);
  const body = createContainerBody(
    { ...plan, labels: { ...testLabels(), ...plan.labels } },
    {
      toolbox: await requireToolbox(engine),
      tokenHash: createHash("sha256").update(token).digest("hex"),
      seccompJson: await loadSeccompProfile(plan.seccomp),
    },
  );
  weaken(body);
  const placeholders = await preparePlaceholders(plan.placeholders);
  const id = await engine.createContainer(body);
  const dispose = async () => {
    await engine.removeContainer(id);
    await placeholders.remove();
  };
  try {
    await engine.startContainer(id);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    id,
    report: async () => await report(engine, { id, plan, token }),
    exec: async (argv, user) => await exec(engine, { id, argv, user }),
    [Symbol.asyncDispose]: dispose,
  };
}

async function report(
  engine: Engine,
  { id, plan, token }: { id: string; plan: SandboxPlan; token: Buffer },
): Promise<KernelReport> {
  const link = await RunnerLink.open({
    token,
    dial: () => openBridge(engine, id, plan),
    diagnose: async () => "runs",
    reconnectForMs: 1000,
    onLate: () => undefined,
  });
  try {
    const setting = { link, cwd: "/", env: {}, onStuck: () => undefined };
    return parseReport(
      await readReport(
        setting,
        plan.mounts.map(({ path }) => path),
      ),
    );
  } finally {
    link.close(new BrigError("the test is done", { code: "sandbox.gone", reason: "closed" }));
  }
}

async function exec(
  engine: Engine,
  { id, argv, user }: { id: string; argv: string[]; user: string | undefined },
): Promise<{ exitCode: number | null; output: string }> {
  const { stream, inspect } = await engine.openExec(id, argv, user === undefined ? {} : { user });
  const frames = new Demultiplexer();
  const pieces: Buffer[] = [];
  // Its bytes are lent to data events only.
  stream.on("data", (chunk: Buffer) => frames.push(chunk, (data) => void pieces.push(Buffer.from(data))));
  stream.end();
  await finished(stream, { writable: false });
  let state = await inspect();
  while (state.running) state = await inspect();
  return { exitCode: state.exitCode, output: Buffer.concat(pieces).toString("utf8") };
}
