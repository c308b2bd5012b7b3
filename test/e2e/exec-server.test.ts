import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { ExecClient, startParams } from "../support/exec-client.js";
import { temporaryDirectory } from "../support/sandbox.js";

let work: string;
let home: string;

beforeEach(async () => {
  const [one, other] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  onTestFinished(async () => {
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  work = one.path;
  home = other.path;
});

describe("brig exec-server", () => {
  const serve = (args: string[] = []) => {
    const server = brig(["exec-server", ...args], {
      cwd: work,
      holdsInputOpen: true,
      env: { BRIG_HOME: home },
    });
    const client = new ExecClient((text) => void server.stdin.write(`${text}\n`));
    let rest = "";
    server.stdout?.on("data", (data: Buffer) => {
      const lines = (rest + data.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("{")) client.receive(line);
    });
    return { server, client };
  };

  it("serves its standard input, and ends with it", async () => {
    const { server, client } = serve();
    await client.initialize();
    await client.call("process/start", startParams("a", "sleep 600 & echo hi", { workspace: work }));
    expect(await client.closed("a")).toMatchObject({ exitCode: 0, output: "hi\n" });
    expect(await containersOf(server.pid)).toHaveLength(1);
    server.stdin.end();
    expect(await server).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await containersOf(server.pid)).toEqual([]);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "leaves nothing behind on %s in the middle of a call",
    async (signal) => {
      const { server, client } = serve();
      await client.initialize();
      await client.call("process/start", startParams("a", "echo on; sleep 600", { workspace: work }));
      await client.until(() => client.output("a") === "on\n");
      server.kill(signal);
      expect((await server).exitCode).toBeGreaterThan(128);
      expect(await containersOf(server.pid)).toEqual([]);
    },
  );

  it("says what is wrong where there is no engine, and goes on", async () => {
    const server = brig(["exec-server"], {
      cwd: work,
      holdsInputOpen: true,
      env: { BRIG_HOME: home, DOCKER_HOST: "unix:///proc/nonexistent" },
    });
    const client = new ExecClient((text) => void server.stdin.write(`${text}\n`));
    server.stdout?.on("data", (data: Buffer) => {
      for (const line of data.toString().split("\n")) if (line !== "") client.receive(line);
    });
    await client.initialize();
    for (const id of ["a", "b"])
      expect(
        (await client.ask("process/start", startParams(id, "true", { workspace: work }))).error,
      ).toMatchObject({
        code: -32603,
        message: expect.stringContaining("/proc/nonexistent"),
      });
    server.stdin.end();
    expect((await server).exitCode).toBe(0);
  });

  it("over a WebSocket prints where it is and the token that it asks for", async () => {
    const server = brig(["exec-server", "--listen", "ws://127.0.0.1:0"], {
      cwd: work,
      env: { BRIG_HOME: home },
    });
    let printed = "";
    server.stdout?.on("data", (data: Buffer) => {
      printed += data;
    });
    await expect.poll(() => printed).toMatch(/token = .*\n$/);
    const url = /^url = "(.*)"$/m.exec(printed)?.[1] ?? "";
    const token = /^auth_bearer_token = "(.*)"$/m.exec(printed)?.[1] ?? "";
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    const client = new ExecClient((text) => socket.send(text));
    socket.on("message", (data) => client.receive(String(data)));
    await new Promise((resolve) => socket.on("open", resolve));
    await client.initialize();
    await client.call("process/start", startParams("a", "echo ws", { workspace: work }));
    expect((await client.closed("a")).output).toBe("ws\n");
    server.kill("SIGTERM");
    await server;
    expect(await containersOf(server.pid)).toEqual([]);
  });

  it.each([
    ["an address that is not loopback", ["--listen", "ws://0.0.0.0:1"], /stdio or ws:\/\/127\.0\.0\.1:PORT/],
    ["another kind of address", ["--listen", "tcp://x"], /stdio or ws/],
    ["a token for standard input", ["--ws-token-file", "x"], /--ws-token-file is for --listen ws/],
    ["no token in the file", ["--listen", "ws://127.0.0.1:0", "--ws-token-file", "none"], /does not exist/],
  ])("refuses %s", async (_, args, message) => {
    const refused = await brigHere(["exec-server", ...args], { cwd: work });
    expect(refused).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringMatching(message) });
  });
});

describe("brig setup codex", () => {
  const setUp = (args: string[] = []) => brigHere(["setup", "codex", ...args], { env: { CODEX_HOME: home } });

  it("is named where only brig setup was typed", async () => {
    const { exitCode, stderr } = await brig(["setup"]);
    expect([exitCode, stderr]).toEqual([
      2,
      "brig: brig setup needs a subcommand: claude or codex\nhint: see: brig setup --help\n",
    ]);
  });
  const file = () => join(home, "environments.toml");

  it("writes what Codex needs once, and says what it did", async () => {
    expect(await setUp()).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^wrote .*environments\.toml:\n {2}default = "brig"\n/),
    });
    const written = await readFile(file(), "utf8");
    expect(await setUp()).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^nothing to change in /),
    });
    expect(await readFile(file(), "utf8")).toBe(written);
  });

  it("only prints with --print, with what is there", async () => {
    await writeFile(file(), "# mine\n");
    const { stdout, exitCode } = await setUp(["--print", "--program", "/opt/brig"]);
    expect({ stdout, exitCode }).toEqual({
      exitCode: 0,
      stdout: `default = "brig"
include_local = false
# mine

[[environments]]
id = "brig"
program = "/opt/brig"
args = ["exec-server", "--listen", "stdio"]
`,
    });
    expect(await readFile(file(), "utf8")).toBe("# mine\n");
  });

  it("changes nothing in a file that is wrong", async () => {
    await writeFile(file(), "default = ");
    expect(await setUp()).toMatchObject({ exitCode: 2, stdout: "" });
    expect(await readFile(file(), "utf8")).toBe("default = ");
  });
});
