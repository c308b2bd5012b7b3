import { chmod, chown, copyFile, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import type { Engine } from "../docker/engine-types.js";
import { requireToolbox } from "../images/require-toolbox.js";
import { type OpenedSandbox, openSandbox } from "../open-sandbox.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { Policy } from "../policy/policy.js";
import { sandboxFrom } from "../sandbox.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { allAttempts } from "./attempts.js";
import { type Judgement, judge } from "./judge.js";
import {
  type HostTargets,
  type Outcomes,
  openHostTargets,
  openWeakTwin,
  parseOutcomes,
  type WeakTwin,
} from "./weak-twin.js";

/** The outcome of all attempts in the sandbox of one policy. */
export interface AttackedPolicy {
  /** The mode, or the policy file as it was given. */
  policy: string;
  image: string;
  /** The OCI runtime; null for the engine's default. */
  runtime: string | null;
  kernel: SandboxPlan["kernel"];
  /** The user that the commands run as. */
  user: { uid: number; gid: number };
  /** Rules for requests and secrets, which no attempt is about. Null without any. */
  egress: {
    /** The hosts to which each request needs a rule. */
    ruledHosts: string[];
    /** The names of the secrets that stay outside. */
    secrets: string[];
  } | null;
  judgements: Judgement[];
}

export interface AttackOptions {
  /** One sandbox is opened for each. The workspace of each is replaced by an empty one. */
  settings: readonly SandboxSettings[];
  /** Whether to make the attempts also in a container without protection, where they have to succeed. */
  hasControl: boolean;
  signal: AbortSignal;
  onProgress: (step: string) => void;
}

/**
 * Attempts what sandboxes refuse in the sandbox of each of the settings, one after the other. Errors: those of opening a sandbox, and
 * `engine.failed` for the container without protection.
 */
export async function attack(engine: Engine, options: AttackOptions): Promise<AttackedPolicy[]> {
  await using targets = await openHostTargets(engine.endpoint);
  const attacked: AttackedPolicy[] = [];
  for (const [at, settings] of options.settings.entries()) {
    options.signal.throwIfAborted();
    const count = options.settings.length > 1 ? ` (${at + 1} of ${options.settings.length})` : "";
    attacked.push(await attackOne(engine, settings, { ...options, targets, count }));
  }
  return attacked;
}

/** The time that the attempts may take together. They end by themselves, each after 20 seconds, but a kernel may prevent that. */
const ATTEMPTS_MS = 300_000;

interface Surroundings extends AttackOptions {
  targets: HostTargets;
  /** The number of this sandbox among several, for the progress lines; empty for a single one. */
  count: string;
}

async function attackOne(
  engine: Engine,
  settings: SandboxSettings,
  { targets, hasControl, signal, onProgress, count }: Surroundings,
): Promise<AttackedPolicy> {
  const { name, policy } = settings.policy;
  await using workspace = await emptyWorkspace();
  onProgress(`starting a sandbox: ${name}${count}`);
  const opened = await openSandbox({ ...settings, workspace: workspace.path }, { engine, signal });
  await using sandbox = sandboxFrom(opened);
  const { plan } = opened;
  await using twin = hasControl ? await startTwin(engine, { targets, plan, signal, onProgress }) : null;
  const setuidProgram = twin === null ? undefined : await bringSetuidProgram(twin, workspace.path);
  const control = twin === null ? null : await controlsIn(twin, onProgress);
  onProgress(`making the attempts in the sandbox${count}`);
  const argv = targets.attempts({ ...placeIn(opened, policy), workspace: workspace.path, setuidProgram });
  const { stdout, stderr, exitCode } = await sandbox.exec(argv, { cwd: "/", signal, timeoutMs: ATTEMPTS_MS });
  const outcomes = parseOutcomes(stdout);
  if (Object.keys(outcomes).length === 0)
    throw new BrigError(`the attempts could not be made in the sandbox: exit ${exitCode}, ${stderr.trim()}`, {
      code: "engine.failed",
      hint: "try: brig exec -- /.brig/attempts all",
    });
  const { uid, gid } = plan.user;
  return {
    policy: name,
    ...{ image: plan.image, runtime: plan.runtime, kernel: plan.kernel, user: { uid, gid } },
    egress: settings.inspection
      ? {
          ruledHosts: [...new Set(settings.inspection.rules.map(({ host }) => host))],
          secrets: settings.inspection.secrets.map(({ name: variable }) => variable),
        }
      : null,
    judgements: allAttempts.map((one) => judge(one, { policy, kernel: plan.kernel, outcomes, control })),
  };
}

async function startTwin(
  engine: Engine,
  {
    targets,
    plan,
    signal,
    onProgress,
  }: Pick<Surroundings, "targets" | "signal" | "onProgress"> & { plan: SandboxPlan },
): Promise<WeakTwin> {
  onProgress("starting a container without protection, as the control");
  return await openWeakTwin(engine, {
    ...{ image: plan.image, targets, limits: plan.limits, signal },
    toolbox: await requireToolbox(engine),
  });
}

async function controlsIn(
  twin: WeakTwin,
  onProgress: (step: string) => void,
): Promise<{ root: Outcomes; user: Outcomes }> {
  onProgress("making the attempts in the container without protection");
  return { root: await twin.attempt("0:0"), user: await twin.attempt("1234:4321") };
}

/** The workspace is the only directory of the host in it, so that the attempts meet no file of the user's. */
async function emptyWorkspace(): Promise<AsyncDisposable & { path: string }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "brig-attack-")));
  await mkdir(join(path, ".git"));
  return {
    path,
    [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true }),
  };
}

/** Only root can give a file to root, so for anybody else there is no such program. */
async function bringSetuidProgram(twin: WeakTwin, workspace: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const path = join(workspace, "setuid-program");
  await copyFile(twin.setuidProgram, path);
  await chown(path, 0, 0);
  await chmod(path, 0o4755);
  return path;
}

/** /dev/mqueue is the container's own. */
const OF_EVERY_CONTAINER = ["/dev/shm", "/dev/mqueue"];

function placeIn({ plan }: OpenedSandbox, policy: Policy) {
  const workspace = policy.workspace.access === "rw" && plan.workspace !== null ? [plan.workspace] : [];
  return {
    writable: [...workspace, ...plan.tmpfs.map(({ path }) => path), ...OF_EVERY_CONTAINER],
    protectedNames: policy.workspace.protected,
    mayLeave: policy.network.kind !== "full",
    memoryBytes: plan.limits.memoryBytes,
    pids: plan.kernel === "gvisor" ? null : plan.limits.pids,
  };
}
