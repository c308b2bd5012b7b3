import { mkdirSync, renameSync } from "node:fs";
import { link, mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { planSandbox } from "../../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../../src/sandbox/policy/load-policy.js";
import { SANDBOX_MODES } from "../../../src/sandbox/policy/modes.js";
import { testEngine } from "../../support/engine.js";
import { listenOnHost, makeFifo, readFifoOnHost, stopListening } from "../../support/host-listeners.js";
import { startRawContainer } from "../../support/raw-container.js";
import { sandboxTest } from "../../support/sandbox.js";

/** Tries to reach each path as a server, as a receiver of datagrams and as a FIFO, and prints the paths that it reaches. */
const REACH = `
import os, socket, stat, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            print(os.path.basename(path))
        except OSError:
            pass
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"x")
            print(os.path.basename(path))
    except OSError:
        pass
`;
const NAMES = ["absolute", "relative", "renamed", "linked", "datagrams", "fifo"];
const reach = (directory: string) => [
  "python3",
  "-c",
  REACH,
  ...NAMES.map((name) => join(directory, "deep", name)),
];

/** Programs of the host that listen in the workspace, each in a way of its own. */
async function listenEverywhere(workspace: string): Promise<void> {
  const directory = join(workspace, "deep");
  await mkdir(directory);
  await listenOnHost({ directory: "/", address: join(directory, "absolute") });
  await listenOnHost({ directory, address: "relative" });
  await listenOnHost({ directory, address: "first", renamed: "renamed" });
  await listenOnHost({ directory, address: "second" });
  await link(join(directory, "second"), join(directory, "linked"));
  await listenOnHost({ directory, address: "datagrams", datagrams: true });
  makeFifo(join(directory, "fifo"));
  readFifoOnHost(join(directory, "fifo"));
}

describe("a program of the host that listens in the workspace", () => {
  for (const mode of SANDBOX_MODES)
    sandboxTest(`is not reached in ${mode}, however it listens`, async ({ open, directory }) => {
      await listenEverywhere(directory);
      const sandbox = await open({ workspace: directory, mode, network: "none" });
      expect(await sandbox.exec(reach(directory))).toMatchObject({ exitCode: 0, output: "" });
    });

  sandboxTest(
    "is not reached among so many directories that the search takes longer than the start",
    async ({ open, directory }) => {
      const many = Array.from({ length: 100 }, (_, at) => join(directory, "many", String(at)));
      for (const one of many)
        for (let inner = 0; inner < 100; inner++)
          mkdirSync(join(one, String(inner), "deeper"), { recursive: true });
      await listenEverywhere(directory);
      const sandbox = await open({ workspace: directory });
      expect(await sandbox.exec(reach(directory))).toMatchObject({ exitCode: 0, output: "" });
    },
  );

  sandboxTest("is not reached through a further directory", async ({ open, directory }) => {
    const [workspace, other] = [join(directory, "w"), join(directory, "other")];
    for (const path of [workspace, other]) await mkdir(path);
    await listenEverywhere(other);
    const sandbox = await open({ workspace, addDirs: [other] });
    expect(await sandbox.exec(reach(other))).toMatchObject({ exitCode: 0, output: "" });
  });

  sandboxTest(
    "is not reached in a copy-on-write workspace, nor once it comes later",
    async ({ open, directory }) => {
      await listenEverywhere(directory);
      const sandbox = await open({ workspace: directory, workspaceKind: "overlay" });
      await rm(join(directory, "deep/absolute"));
      await listenOnHost({ directory: "/", address: join(directory, "deep/absolute") });
      expect(await sandbox.exec(reach(directory))).toMatchObject({ exitCode: 0, output: "" });
    },
  );

  sandboxTest("would be reached by each of these ways without a cover", async ({ directory }) => {
    await listenEverywhere(directory);
    const engine = await testEngine();
    const plan = await planSandbox({
      policy: await loadPolicy("read-only"),
      workspace: directory,
      image: "brig/base",
      addDirs: [],
      writableRoots: [],
      env: {},
      hostUser: { uid: 0, gid: 0 },
      leaseSeconds: 60,
      keep: false,
      sessionId: "listeners-test",
      labels: {},
      engine: await engine.info(),
      endpoint: engine.endpoint,
      host: { homeDirectory: null },
    });
    await using container = await startRawContainer(engine, plan);
    const { output } = await container.exec(reach(directory));
    expect(output.trim().split("\n")).toEqual(NAMES);
  });

  sandboxTest("can end, and take its socket away, while the sandbox runs", async ({ open, directory }) => {
    const listener = await listenOnHost({ directory, address: "a.sock" });
    const sandbox = await open({ workspace: directory });
    const listed = async () => (await sandbox.exec(["ls", "-A", directory])).stdout;
    expect(await listed()).toContain("a.sock");
    await stopListening(listener);
    await rm(join(directory, "a.sock"));
    expect(await listed()).not.toContain("a.sock");
  });
});

/** The server's file is renamed as soon as it is there. */
function listenAndMove(path: string): Server {
  return createServer().listen(path, () => renameSync(path, `${path}.moved`));
}

describe("a program of the host that begins to listen later", () => {
  sandboxTest("ends the sandbox before its next command", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory, mode: "read-only" });
    await sandbox.exec(["true"]);
    await listenOnHost({ directory, address: "a.sock" });
    // A command that begins right after another one is not kept waiting for a second look.
    await new Promise((resolve) => setTimeout(resolve, 60));
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({
      code: "sandbox.gone",
      message: expect.stringContaining("a.sock"),
    });
  });

  sandboxTest("ends it while a command runs", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    // Expected at once, since the command may end before the program of the host has told that it listens.
    const ended = expect(sandbox.exec(["sleep", "600"])).rejects.toMatchObject({
      ...{ code: "sandbox.gone", reason: "killed" },
    });
    await listenOnHost({ directory, address: "first", renamed: "a.sock" });
    await ended;
  });

  sandboxTest("is no command of the sandbox itself", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    const script = `
import os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind("own.sock")
server.listen()
os.mkfifo("own")
reader = os.open("own", os.O_RDONLY | os.O_NONBLOCK)
time.sleep(3)
client = socket.socket(socket.AF_UNIX)
client.connect("own.sock")
os.write(os.open("own", os.O_WRONLY), b"own fifo")
print(os.read(reader, 99).decode())
`;
    // Sockets of the host are moved meanwhile, so that the kernel has no name for the files that are theirs.
    const elsewhere = await mkdtemp(join(tmpdir(), "brig-moved-"));
    const servers: Server[] = [];
    const moving = setInterval(
      () => servers.push(listenAndMove(join(elsewhere, String(servers.length)))),
      100,
    );
    const argv = ["python3", "-c", script];
    try {
      expect(await sandbox.exec(argv, { cwd: directory })).toMatchObject({
        exitCode: 0,
        stdout: "own fifo\n",
      });
      // The file is still there, and nobody listens any more.
      await new Promise((resolve) => setTimeout(resolve, 2500));
      expect((await sandbox.exec(["test", "-S", "own.sock"], { cwd: directory })).exitCode).toBe(0);
    } finally {
      clearInterval(moving);
      for (const server of servers) server.close();
      await rm(elsewhere, { recursive: true });
    }
    expect((await sandbox.exec(["rm", "own", "own.sock"], { cwd: directory })).exitCode).toBe(0);
  });
});
