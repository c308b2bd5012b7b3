import { existsSync } from "node:fs";
import { Duplex } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import {
  type HostTargets,
  openWeakTwin,
  type WeakTwinOptions,
} from "../../../../src/sandbox/attack/weak-twin.js";
import type { ContainerBody } from "../../../../src/sandbox/docker/engine-types.js";
import { multiplexed } from "../channel/fake-runner.js";
import { PlayedEngine } from "../played-engine.js";
import { failure } from "../played-sandbox.js";

const broken = new BrigError("no", { code: "engine.failed" });
const ATTEMPTS = "/.brig/attempts";

interface Ran {
  argv: string[];
  user: string | undefined;
}

interface Played {
  output?: string;
  exitCode?: number;
  /** It neither prints anything more nor ends. */
  hangs?: boolean;
}

/** An engine that runs programs in a container, and what the attempts are asked for. */
function place(play: (ran: Ran) => Played = () => ({})) {
  const engine = new PlayedEngine();
  const ran: Ran[] = [];
  let places: object = {};
  Object.assign(engine, {
    openExec: async (_id: string, argv: string[], { user }: { user?: string } = {}) => {
      ran.push({ argv, user });
      const { output = "", exitCode = 0, hangs = false } = play({ argv, user });
      const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
      onTestFinished(() => void stream.destroy());
      stream.push(multiplexed(1, Buffer.from(output)));
      if (!hangs) stream.push(null);
      let asked = 0;
      // The engine says a little late that it has ended.
      const inspect = async () =>
        ++asked < 3 ? { running: true, exitCode: null } : { running: false, exitCode };
      return { id: "exec", stream, inspect };
    },
  });
  const targets = {
    directory: "/targets",
    attempts: (given: object) => {
      places = given;
      return [ATTEMPTS, "all"];
    },
  } as unknown as HostTargets;
  const open = async (options: Partial<WeakTwinOptions> = {}) =>
    await openWeakTwin(engine.asEngine, {
      image: "brig/base",
      targets,
      toolbox: { volume: "toolbox", directory: "/volumes/toolbox" },
      limits: { memoryBytes: 5, pids: 6 },
      ...options,
    });
  return { engine, ran, open, placesOf: () => places };
}

const hint = { code: "engine.failed", hint: expect.stringContaining("--no-control") };

it("a container without protection has none of them, and no program of its image runs in it", async () => {
  const { engine, ran, open, placesOf } = place();
  await using twin = await open({ labels: { extra: "1" } });
  const { Entrypoint, Cmd, Labels, Hostname, User, NetworkDisabled, HostConfig } = engine.container
    .body as ContainerBody;
  expect({ Entrypoint, Cmd, Hostname, User, NetworkDisabled }).toEqual({
    Entrypoint: [ATTEMPTS],
    Cmd: ["wait", "600"],
    Hostname: undefined,
    User: "0:0",
    NetworkDisabled: false,
  });
  expect(Labels).toMatchObject({ extra: "1", "brig.session": expect.any(String) });
  expect(HostConfig).toMatchObject({
    PidMode: "host",
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
  });
  const binds = HostConfig.Mounts.filter(({ Type }) => Type === "bind").map(({ Source, ReadOnly }) => [
    Source,
    ReadOnly,
  ]);
  expect(binds).toEqual(
    expect.arrayContaining([
      [twin.workspace, false],
      ["/played/docker.sock", false],
      ["/targets", false],
    ]),
  );
  expect(ran).toEqual([{ argv: [ATTEMPTS, "prepare", twin.workspace], user: "0:0" }]);
  expect(twin.setuidProgram).toBe(`${twin.workspace}/setuid-program`);
  expect(existsSync(`${twin.workspace}/.git`)).toBe(true);
  expect(placesOf()).toEqual({
    workspace: twin.workspace,
    setuidProgram: twin.setuidProgram,
    firstProcess: 1,
    memoryBytes: 5,
    pids: 6,
    writable: [],
    protectedNames: [".git", ".brig"],
    mayLeave: false,
  });
});

it("a container of a rootless engine does not have the host's processes", async () => {
  const { engine, open, placesOf } = place();
  const info = engine.info;
  engine.info = async () => ({ ...(await info()), securityOptions: ["name=rootless"] });
  await using _twin = await open();
  expect(engine.container.body.HostConfig.PidMode).toBeUndefined();
  expect(placesOf()).toMatchObject({ firstProcess: undefined });
});

it("an engine that is reached over the network has no socket to mount", async () => {
  const { engine, open } = place();
  Object.assign(engine, { endpoint: "tcp://127.0.0.1:2375" });
  await using _twin = await open();
  expect(engine.container.body.HostConfig.Mounts.map(({ Source }) => Source)).not.toContain(
    "/played/docker.sock",
  );
});

it("the attempts are made as the user who is given, and what came of them is read", async () => {
  const { ran, open } = place(({ argv }) =>
    argv[1] === "all" ? { output: "mount\tdone\nunknown\tdone\n" } : {},
  );
  await using twin = await open();
  const outcomes = await twin.attempt("1234:4321");
  expect(ran.at(-1)).toEqual({ argv: [ATTEMPTS, "all"], user: "1234:4321" });
  expect(Object.keys(outcomes)).not.toContain("unknown");
  expect(await twin.exec(["id"])).toEqual({ exitCode: 0, output: "" });
  expect(ran.at(-1)).toEqual({ argv: ["id"], user: undefined });
});

it("what is left at the end is nothing", async () => {
  const { engine, open } = place();
  const twin = await open();
  await twin[Symbol.asyncDispose]();
  expect(engine.container.state).toBe("gone");
  expect(existsSync(twin.workspace)).toBe(false);
});

it.for<[string, (given: ReturnType<typeof place>) => void, string]>([
  ["cannot be created", ({ engine }) => (engine.createContainer = fails), "no"],
  ["cannot be started", ({ engine }) => (engine.startContainer = fails), "no"],
  ["cannot be looked at", ({ engine }) => (engine.inspectContainer = fails), "no"],
])(
  "a container that %s is an error with the way around it, and leaves nothing",
  async ([, change, words]) => {
    const given = place();
    change(given);
    expect(await failure(given.open())).toMatchObject({
      ...hint,
      message: `the container without protection cannot be used: ${words}`,
      cause: broken,
    });
    expect(given.engine.running).toEqual([]);
  },
);

async function fails(): Promise<never> {
  throw broken;
}

it("a container in which nothing can be prepared says what the program said", async () => {
  const { engine, open } = place(() => ({ output: " no space \n", exitCode: 1 }));
  expect(await failure(open())).toMatchObject({ ...hint, message: expect.stringMatching(/used: no space$/) });
  expect(engine.running).toEqual([]);
});

it("attempts that fail there say what was printed, not all of it", async () => {
  const { open } = place(({ argv }) =>
    argv[1] === "all" ? { output: `${"x".repeat(500)}y`, exitCode: 1 } : {},
  );
  await using twin = await open();
  expect(await failure(twin.attempt("0:0"))).toMatchObject({
    ...hint,
    message: expect.stringMatching(/the attempts failed there: x{500}$/),
  });
});

it("of what a program prints a mebibyte is kept", async () => {
  const { open } = place(({ argv }) => ({ output: "x".repeat(Number(argv[1]) || 0) }));
  await using twin = await open();
  expect((await twin.exec(["print", String(1024 * 1024)])).output).toHaveLength(1024 * 1024);
  expect((await twin.exec(["print", String(1024 * 1024 + 1)])).output).toBe("");
});

it("a program that does not end is given up after its time", async () => {
  const { open } = place(({ argv }) => ({ hangs: argv[0] === "sleep" || argv[1] === "all" }));
  await using twin = await open({ execMs: 300 });
  expect(await failure(twin.exec(["sleep"]))).toMatchObject({ message: "sleep did not end within 0.3 s" });
  expect(await failure(twin.attempt("0:0"))).toMatchObject({
    ...hint,
    message: expect.stringContaining(`${ATTEMPTS} did not end within 0.3 s`),
  });
});

it("an abort ends what runs there, with the signal's reason, and leaves nothing", async () => {
  const early = place();
  const before = AbortSignal.abort(new Error("before"));
  expect(await failure(early.open({ signal: before }))).toBe(before.reason);
  expect(early.engine.containers).toEqual([]);
  const controller = new AbortController();
  const late = place(() => {
    controller.abort(new Error("meanwhile"));
    return { hangs: true };
  });
  expect(await failure(late.open({ signal: controller.signal }))).toBe(controller.signal.reason);
  expect(late.engine.running).toEqual([]);
  const other = new AbortController();
  const { open } = place(({ argv }) => {
    if (argv[1] === "all") other.abort(new Error("at last"));
    return { hangs: argv[1] === "all" };
  });
  await using twin = await open({ signal: other.signal });
  expect(await failure(twin.attempt("0:0"))).toBe(other.signal.reason);
});
