import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { BrigError } from "../../errors.js";
import { ownerOf, readHostProcesses } from "../../lib/owner.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { readVersion } from "../../version.js";
import { Demultiplexer } from "../channel/demultiplexer.js";
import type { ContainerBody, Engine } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import { sessionLabels } from "../labels.js";
import { createContainerBody } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";
import { planSandbox } from "../plan/plan-sandbox.js";
import { loadPolicy } from "../policy/load-policy.js";
import { loadSeccompProfile } from "../policy/policy-directory.js";
import { ATTEMPTS_PROGRAM, type HostTargets } from "./host-targets.js";
import { type Outcomes, parseOutcomes } from "./outcomes.js";

/** A container without any protection, in which the same attempts succeed. No program of its image runs in it. */
export interface WeakTwin extends AsyncDisposable {
  /** The path on the host, and inside. */
  readonly workspace: string;
  /** A program that belongs to root, in `workspace`. */
  readonly setuidProgram: string;
  /** Makes the attempts and returns their outcomes. `user` is a number, a colon and a group's number. */
  attempt(user: string): Promise<Outcomes>;
  exec(argv: readonly string[], user?: string): Promise<{ exitCode: number | null; output: string }>;
}

export interface WeakTwinOptions {
  image: string;
  targets: HostTargets;
  toolbox: Toolbox;
  /** The limits of the sandbox that is attempted as well. */
  limits: { memoryBytes: number; pids: number };
  /** Labels besides those by which `brig gc` finds it. */
  labels?: Readonly<Record<string, string>>;
  /** The time that a program may run there. Default: 2 minutes. */
  execMs?: number;
  signal?: AbortSignal | undefined;
}

/** It ends by itself after this time, whatever becomes of this process. */
const LIFETIME_SECONDS = 600;

/** The attempts take seconds together, and each ends by itself after 20. */
const EXEC_MS = 120_000;

/** An engine may show far less than this at once of a container's output. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** Errors: those of the engine, with a hint about `--no-control`. */
export async function openWeakTwin(engine: Engine, options: WeakTwinOptions): Promise<WeakTwin> {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "brig-twin-")));
  await mkdir(join(workspace, ".git"));
  let id: string | undefined;
  const dispose = async () => {
    if (id !== undefined) await engine.removeContainer(id);
    await rm(workspace, { recursive: true, force: true });
  };
  const { signal, execMs = EXEC_MS } = options;
  try {
    const plan = await twinPlan(engine, workspace, options);
    const body = createContainerBody(plan, {
      toolbox: options.toolbox,
      tokenHash: "0",
      seccompJson: await loadSeccompProfile(plan.seccomp),
    });
    const sharesProcesses = !isRootless(await engine.info());
    weaken(body, { engine, targets: options.targets, sharesProcesses });
    signal?.throwIfAborted();
    // Not interrupted: whoever leaves a request to create does not know what to remove.
    id = await engine.createContainer(body);
    const container = id;
    await engine.startContainer(container);
    const run = async (argv: readonly string[], user?: string) => {
      using limit = new TimeLimit(execMs, signal);
      try {
        return await beforeAbort(exec(engine, { id: container, argv, user }), limit.signal);
      } catch (error) {
        throw limit.isOver ? new Error(`${argv[0]} did not end within ${execMs / 1000} s`) : error;
      }
    };
    const ready = await run([ATTEMPTS_PROGRAM, "prepare", workspace], "0:0");
    if (ready.exitCode !== 0) throw new Error(ready.output.trim());
    const firstProcess = sharesProcesses ? (await engine.inspectContainer(container))?.pid : undefined;
    const setuidProgram = join(workspace, "setuid-program");
    const argv = options.targets.attempts({
      ...{ workspace, setuidProgram, firstProcess, ...options.limits },
      ...{ writable: [], protectedNames: [".git", ".brig"], mayLeave: false },
    });
    return {
      workspace,
      setuidProgram,
      exec: run,
      attempt: async (user) => {
        const { exitCode, output } = await run(argv, user).catch((error: unknown) => {
          signal?.throwIfAborted();
          throw unusable(error);
        });
        if (exitCode !== 0) throw unusable(new Error(`the attempts failed there: ${output.slice(0, 500)}`));
        return parseOutcomes(output);
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    // It ends by itself, and `brig gc` removes it: why it could not be used says more.
    await dispose().catch(() => undefined);
    signal?.throwIfAborted();
    throw unusable(error);
  }
}

function unusable(cause: unknown): BrigError {
  return new BrigError(
    `the container without protection cannot be used: ${cause instanceof Error ? cause.message : cause}`,
    {
      code: "engine.failed",
      hint: "--no-control makes the attempts in the sandbox alone; then nothing shows that they could succeed",
      cause,
    },
  );
}

async function twinPlan(
  engine: Engine,
  workspace: string,
  { image, labels = {} }: WeakTwinOptions,
): Promise<SandboxPlan> {
  const sessionId = randomUUID();
  return await planSandbox({
    policy: await loadPolicy("danger-full-access"),
    ...{ workspace, image, sessionId, addDirs: [], writableRoots: [], env: {}, keep: false },
    hostUser: { uid: 0, gid: 0 },
    leaseSeconds: LIFETIME_SECONDS,
    labels: {
      ...sessionLabels({
        ...{ sessionId, version: readVersion(), createdAt: new Date(), leaseSeconds: LIFETIME_SECONDS },
        owner: await ownerOf(process.pid, await readHostProcesses(hostname())),
      }),
      ...labels,
    },
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: { homeDirectory: null },
  });
}

/** Each line takes one protection away. A rootless engine may not show a container the host's processes. */
function weaken(
  body: ContainerBody,
  { engine, targets, sharesProcesses }: { engine: Engine; targets: HostTargets; sharesProcesses: boolean },
): void {
  const sockets = engine.endpoint.startsWith("unix:") ? [new URL(engine.endpoint).pathname] : [];
  const bind = (path: string) => ({ Type: "bind", Source: path, Target: path, ReadOnly: false }) as const;
  Object.assign(body, {
    Entrypoint: [ATTEMPTS_PROGRAM],
    Cmd: ["wait", String(LIFETIME_SECONDS)],
    NetworkDisabled: false,
  });
  delete body.Hostname;
  const without: Partial<ContainerBody["HostConfig"]> = {
    ...(sharesProcesses && { PidMode: "host" }),
    UTSMode: "host",
    NetworkMode: "host",
    ReadonlyRootfs: false,
    SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
    CapDrop: [],
    CapAdd: ["SYS_ADMIN", "SYS_RAWIO", "SYSLOG", "NET_ADMIN", "MKNOD"],
    Devices: [{ PathOnHost: "/dev/kmsg", PathInContainer: "/dev/kmsg", CgroupPermissions: "r" }],
    MaskedPaths: [],
    ReadonlyPaths: [],
    Sysctls: {},
    Memory: 0,
    MemorySwap: 0,
    PidsLimit: 0,
    Tmpfs: { "/tmp": "rw,exec", "/run": "rw,exec" },
    Mounts: [...body.HostConfig.Mounts, ...sockets.map(bind), bind(targets.directory)],
  };
  Object.assign(body.HostConfig, without);
}

async function exec(
  engine: Engine,
  { id, argv, user }: { id: string; argv: readonly string[]; user: string | undefined },
): Promise<{ exitCode: number | null; output: string }> {
  const { stream, inspect } = await engine.openExec(id, [...argv], user === undefined ? {} : { user });
  const frames = new Demultiplexer();
  const pieces: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) =>
    frames.push(chunk, (data) => {
      bytes += data.length;
      // Its bytes are lent to data events only.
      if (bytes <= MAX_OUTPUT_BYTES) pieces.push(Buffer.from(data));
    }),
  );
  stream.end();
  await finished(stream, { writable: false });
  let state = await inspect();
  while (state.running) state = await inspect();
  return { exitCode: state.exitCode, output: Buffer.concat(pieces).toString("utf8") };
}
