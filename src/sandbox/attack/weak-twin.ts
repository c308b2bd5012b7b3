import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { homedir, hostname, networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { BrigError } from "../../errors.js";
import { ownerOf, readHostProcesses } from "../../lib/owner.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { readVersion } from "../../version.js";
import { Demultiplexer } from "../channel/frames.js";
import type { ContainerBody, Engine } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import { sessionLabels } from "../labels.js";
import { createContainerBody, TOOLBOX_PATH } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";
import { planSandbox } from "../plan/plan-sandbox.js";
import { loadPolicy } from "../policy/load-policy.js";
import { loadSeccompProfile } from "../policy/policy-directory.js";
import { errnoName } from "../process/errno-names.js";
import { allAttempts } from "./attempts.js";

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

/** The program of the toolbox that makes the attempts. */
export const ATTEMPTS_PROGRAM = `${TOOLBOX_PATH}/attempts`;

/** Targets of the attempts: things of the host that no container may see or reach. */
export interface HostTargets extends AsyncDisposable {
  /** A directory outside of every workspace, with a file and somebody's keys. */
  readonly directory: string;
  /** The argument vector that makes the attempts in a container. */
  attempts(place: Place): string[];
}

interface Place {
  workspace: string;
  /** The places where files can be made; null if no list is wanted. */
  writable: readonly string[] | null;
  /** Names at the top of the workspace. */
  protectedNames: readonly string[];
  /** A program in the workspace that belongs to root and is setuid; undefined if there is none. */
  setuidProgram: string | undefined;
  /** The container's own first process, as its commands see it. Default: 1. */
  firstProcess?: number | undefined;
  /** Whether to try addresses of the internet: only where that is refused, so that nothing leaves this machine. */
  mayLeave: boolean;
  /** The memory and the number of processes that the sandbox is limited to. Null leaves out the attempt to start more. */
  memoryBytes: number;
  pids: number | null;
}

/** Limits of files that are larger are believed and not tried out. */
const MANY_FILES = 200_000;

/** Names, files, processes and listeners of the host, each with a random name that nothing else has. */
export async function openHostTargets(endpoint: string): Promise<HostTargets> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "brig-targets-")));
  const outside = join(directory, "file");
  await writeFile(outside, "only on the host");
  await mkdir(join(directory, ".ssh"));
  const name = randomBytes(8).toString("hex");
  const secret = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")] as const;
  // A single process, which waits for the end of its input: it also ends when this process is killed.
  const child = spawn("sh", ["-c", "read -r line", secret.join("")], {
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", BRIG_ATTEMPT_SECRET: secret.join("") },
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.on("error", () => undefined);
  const servers = [closing(), closing()] as const;
  const [tcp, abstract] = servers;
  await listening(tcp, { port: 0, host: "0.0.0.0" });
  // Only Linux has such sockets.
  const hasAbstract = await listening(abstract, { path: `\0${name}` }).then(
    () => true,
    () => false,
  );
  const datagrams = await echo();
  const given = [
    ...pairs("secretBegin", [secret[0]]),
    ...pairs("secretEnd", [secret[1]]),
    ...pairs("engineSocket", engineSockets(endpoint)),
    ...pairs("hostName", [hostname()]),
    ...pairs("hostHome", [homedir(), directory]),
    ...pairs("outside", [outside]),
    ...pairs("abstractName", hasAbstract ? [name] : []),
    ...pairs("hostPort", [portOf(tcp)]),
    ...pairs("hostDatagramPort", [datagrams.address().port]),
    ...pairs("hostAddress", hostAddresses()),
    ...pairs("lookup", [`${name}.example.com`]),
    ...pairs("manyFiles", [MANY_FILES]),
  ];
  return {
    directory,
    attempts: (place) => [ATTEMPTS_PROGRAM, "all", ...given, ...placeArguments(place)],
    async [Symbol.asyncDispose]() {
      await ended(child);
      for (const server of servers.filter(({ listening }) => listening))
        await new Promise((resolve) => server.close(resolve));
      await new Promise<void>((resolve) => datagrams.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function placeArguments(place: Place): string[] {
  const { workspace, writable, protectedNames, setuidProgram, firstProcess = 1 } = place;
  return [
    ...pairs("workspace", [workspace]),
    // An empty list is one all the same: nothing may be writable.
    ...pairs("writable", writable === null ? [] : [...writable, ""]),
    ...pairs(
      "protected",
      protectedNames.map((name) => join(workspace, name)),
    ),
    ...pairs("setuidProgram", setuidProgram === undefined ? [] : [setuidProgram]),
    ...pairs("firstProcess", [firstProcess]),
    ...pairs("mayLeave", place.mayLeave ? [1] : []),
    ...pairs("memoryBytes", [place.memoryBytes]),
    ...pairs("manyProcesses", place.pids === null ? [] : [place.pids + 1]),
  ];
}

function pairs(name: string, values: readonly (string | number)[]): string[] {
  return values.map((value) => `${name}=${value}`);
}

function engineSockets(endpoint: string): string[] {
  const own = endpoint.startsWith("unix:") ? [new URL(endpoint).pathname] : [];
  return [...new Set([...own, "/var/run/docker.sock", "/run/docker.sock"])];
}

/** Takes connections, and ends them. */
function closing(): Server {
  return createServer((socket) => socket.on("error", () => undefined).end());
}

async function listening(server: Server, at: { port: number; host: string } | { path: string }) {
  server.listen(at);
  await once(server, "listening");
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function echo(): Promise<DatagramSocket> {
  const socket = createSocket("udp4");
  socket.on("message", (message, { port, address }) => socket.send(message, port, address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

/** Addresses of this machine by which a container could reach it over a bridge. */
function hostAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

/** The outcome of each attempt, by its name: "done", names of errors, "nothing", "found …", "untried: …" or "ended by signal …". */
export type Outcomes = Readonly<Record<string, string>>;

/** One of the program's attempts is only a check of another one, that files can be made where the policy says so. */
const CHECK = "places-that-stopped-being-writable";

/** Longer than any outcome that the program prints. */
const MOST_CHARS = 1000;

/**
 * Reads what the program `attempts` prints: a line for each attempt, its name, a tab and its outcome, with `#13` for errno 13.
 * It ran in a container, so only what is known is believed.
 */
export function parseOutcomes(output: string): Outcomes {
  const known = new Set([CHECK, ...allAttempts.map(({ attempt }) => attempt)]);
  const outcomes: Record<string, string> = {};
  for (const line of output.split("\n")) {
    const [name = "", outcome = ""] = line.split("\t");
    if (!known.has(name) || outcome === "" || outcomes[name] !== undefined) continue;
    outcomes[name] = withNames(outcome.slice(0, MOST_CHARS));
  }
  return outcomes;
}

function withNames(outcome: string): string {
  return outcome.replace(/(?<![^ ])#([0-9]{1,4})(?![^ ])/g, (_, number: string) => errnoName(Number(number)));
}
