import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

const page =
  "import http.server\nhttp.server.test(http.server.SimpleHTTPRequestHandler, port=3000, bind='127.0.0.1')";
const serve = ["python3", "-c", page];

async function openPlace() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const [home, workspace] = [join(directory.path, "home"), join(directory.path, "work")];
  await mkdir(workspace);
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" };
  const run = (...args: string[]) => brigHere(args, { env, cwd: workspace });
  const start = (...args: string[]) => {
    const running = brig(args, { env, cwd: workspace });
    onTestFinished(async () => {
      running.kill("SIGTERM");
      await running;
    });
    return running;
  };
  const listed = async (...flags: string[]) => JSON.parse((await run("port", "--json", ...flags)).stdout);
  const waitForSandboxes = (count: number) =>
    expect.poll(async () => (await listed("--all")).length, { timeout: 60_000 }).toBe(count);
  return { home, workspace, run, start, listed, waitForSandboxes };
}

async function statusOf(url: string): Promise<number> {
  return (await fetch(`${url}/etc/hostname`)).status;
}

describe("brig port, with a sandbox of another process", () => {
  it("opens a port of the only one, lists it, and closes it", async () => {
    const place = await openPlace();
    const running = place.start("exec", "--workspace", "none", "--", ...serve);
    await place.waitForSandboxes(1);
    const hint = await place.run("port");
    expect(hint.stderr).toContain("1 running sandbox has no such port: brig port --all lists them");
    const opened = await place.run("port", "0:3000");
    expect(opened.exitCode, opened.stderr).toBe(0);
    const url = opened.stdout.trim();
    await expect.poll(async () => await statusOf(url).catch(() => null)).toBe(200);
    const port = Number(new URL(url).port);
    const expected = { url, port, sandboxPort: 3000, session: null, pid: running.pid };
    expect(await place.listed()).toEqual([expect.objectContaining(expected)]);
    const closed = await place.run("port", "--close", String(port), "--json");
    expect(JSON.parse(closed.stdout)).toEqual({ closed: port });
    await expect(fetch(url)).rejects.toThrow();
    expect(await place.listed()).toEqual([]);
    const again = await place.run("port", "--close", String(port));
    expect([again.exitCode, again.stderr]).toEqual([
      2,
      expect.stringContaining(`port ${port} of this machine leads to no sandbox`),
    ]);
  });

  it("closes the port with the session, and leaves no record of it", async () => {
    const place = await openPlace();
    const running = place.start("exec", "--workspace", "none", "--", ...serve);
    await place.waitForSandboxes(1);
    const url = (await place.run("port", "0:3000")).stdout.trim();
    await expect.poll(async () => await statusOf(url).catch(() => null)).toBe(200);
    running.kill("SIGTERM");
    expect((await running).exitCode).toBe(143);
    await expect(fetch(url)).rejects.toThrow();
    expect(await place.listed("--all")).toEqual([]);
    expect(await readdir(join(place.home, "control"))).toEqual([]);
    expect((await place.run("port", "3000")).stderr).toContain("no sandbox is running");
  });

  it("closes a port that was published, and says what is in the way of another one", async () => {
    const place = await openPlace();
    const running = place.start("exec", "--workspace", "none", "--publish", "0:3000", "--", ...serve);
    const [line] = await once(running.stderr, "data");
    const url = /at (http:\S+)/.exec(String(line))?.[1] ?? "";
    await expect.poll(async () => await statusOf(url).catch(() => null)).toBe(200);
    const { port } = new URL(url);
    await expect
      .poll(async () => (await place.run("port", `${port}:3000`)).stderr)
      .toContain(`another program on this machine listens on port ${port} of 127.0.0.1`);
    expect((await place.run("port", `${port}:3000`)).exitCode).toBe(1);
    expect((await place.run("port", "--close", port)).stderr).toContain(`closed ${url}`);
    await expect(fetch(url)).rejects.toThrow();
    const freed = createServer().listen(Number(port), "127.0.0.1");
    await once(freed, "listening");
    freed.close();
  });

  it("is asked for one of several by its id or the name of its session", async () => {
    const place = await openPlace();
    const script = join(place.workspace, "script.json");
    const calls = [
      { exec_command: { cmd: "python3 -m http.server 3000 --bind 127.0.0.1", yield_time_ms: 250 } },
    ];
    const wait = [{ shell: { command: ["sleep", "240"], timeout_ms: 300_000 } }];
    await writeFile(script, JSON.stringify({ steps: [{ calls }, { calls: wait }, { text: "done" }] }));
    const session = place.start("run", "--json", "--script", script, "go");
    place.start("wrap", "--name", "work", "--workspace", "none", "--", "sleep", "300");
    await place.waitForSandboxes(2);
    const which = await place.run("port", "0:3000");
    expect([which.exitCode, which.stderr]).toEqual([2, expect.stringContaining("2 sandboxes are running")]);
    const [one, other] = await place.listed("--all");
    const ofSession = one.session === "work" ? other : one;
    const ofName = one.session === "work" ? one : other;
    expect(ofSession).toMatchObject({ command: "brig run", url: null, pid: session.pid });
    const opened = JSON.parse(
      (await place.run("port", ofSession.session.slice(0, 13), "0:3000", "--json")).stdout,
    );
    expect(opened).toMatchObject({
      sandbox: ofSession.sandbox,
      session: ofSession.session,
      sandboxPort: 3000,
    });
    expect((await fetch(opened.url)).status).toBe(200);
    const named = JSON.parse((await place.run("port", "work", "0:3000", "--json")).stdout);
    expect(named).toMatchObject({ sandbox: ofName.sandbox, session: "work" });
    const byId = await place.run("port", ofName.sandbox.slice(0, 8), "0:4000");
    expect(byId.stdout).toMatch(/^http:/);
    const unknown = await place.run("port", "nobody", "3000");
    expect([unknown.exitCode, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('no running sandbox is "nobody"'),
    ]);
  });

  it.each([["3000:70000"], ["work", "x"], ["--close", "0"], ["--close", "1:2"], ["--close", "1", "2"]])(
    "refuses %s %s %s",
    async (...args) => {
      const place = await openPlace();
      const { exitCode, stdout } = await place.run("port", ...args);
      expect([exitCode, stdout]).toEqual([2, ""]);
    },
  );

  it("is not disturbed by requests that are malformed, forged, too long or never end", async () => {
    const place = await openPlace();
    place.start("exec", "--workspace", "none", "--", ...serve);
    await place.waitForSandboxes(1);
    const [name = ""] = await readdir(join(place.home, "control"));
    const { address, token } = JSON.parse(await readFile(join(place.home, "control", name), "utf8"));
    const open = { kind: "open", token, sandboxPort: 3000, hostPort: 0 };
    const idle = Array.from({ length: 20 }, () => connect(address).on("error", () => undefined));
    const requests = [
      ...["", "{", "null", "[]", '"open"', "[".repeat(4000), "x".repeat(100_000), "\0\u001b[2J"],
      ...[{}, { ...open, token: "" }, { ...open, token: "f".repeat(64) }, { ...open, token: 1 }],
      ...[
        { ...open, kind: "exec" },
        { ...open, sandboxPort: -1 },
        { ...open, sandboxPort: 1.5 },
        { ...open, hostPort: "0" },
      ],
    ].map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
    const ask = async (text: string) => {
      const socket = connect(address).on("error", () => undefined);
      socket.end(`${text}\n`);
      return (
        await socket
          .setEncoding("utf8")
          .toArray()
          .catch(() => [])
      ).join("");
    };
    for (const request of requests) expect(await ask(request), request.slice(0, 100)).toBe("");
    for (const socket of idle) socket.destroy();
    const tooHigh = async () => await ask(JSON.stringify({ ...open, sandboxPort: 70_000 }));
    await expect.poll(tooHigh).toContain('"kind":"failed","code":"usage.invalid"');
    expect(await place.listed()).toEqual([]);
    const url = (await place.run("port", "0:3000")).stdout.trim();
    await expect.poll(async () => await statusOf(url).catch(() => null)).toBe(200);
  });

  it("takes back a port of whose opening nobody learned", async () => {
    const place = await openPlace();
    place.start("exec", "--workspace", "none", "--", ...serve);
    await place.waitForSandboxes(1);
    const [name = ""] = await readdir(join(place.home, "control"));
    const { address, token } = JSON.parse(await readFile(join(place.home, "control", name), "utf8"));
    for (let count = 0; count < 10; count++) {
      const socket = connect(address).on("error", () => undefined);
      const request = { kind: "open", token, sandboxPort: 3000, hostPort: 0 };
      await new Promise((resolve) => socket.write(`${JSON.stringify(request)}\n`, resolve));
      socket.destroy();
    }
    await place.run("port", "0:3000");
    await expect.poll(async () => (await place.listed()).length).toBe(1);
  });

  it("keeps what others could use from being asked", async () => {
    const place = await openPlace();
    await mkdir(join(place.home, "control"), { recursive: true });
    await chmod(join(place.home, "control"), 0o777);
    const refused = await place.run("port", "3000");
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("only you can use")]);
    const running = place.start("exec", "--workspace", "none", "--", "sleep", "5");
    expect((await running).exitCode).toBe(0);
    expect(await readdir(join(place.home, "control"))).toEqual([]);
  });

  it("cannot be asked by what runs in a sandbox that sees the records", async () => {
    const place = await openPlace();
    place.start("exec", "--workspace", "none", "--", ...serve);
    await place.waitForSandboxes(1);
    const ask = `import glob, json, socket, sys
for path in glob.glob(${JSON.stringify(`${place.home}/control/*.json`)}):
  record = json.load(open(path))
  one = socket.socket(socket.AF_UNIX)
  one.settimeout(10)
  try:
    one.connect(record["address"].encode())
    one.sendall(json.dumps({"kind": "open", "token": record["token"], "sandboxPort": 3000, "hostPort": 0}).encode() + b"\\n")
    print(one.recv(4096).decode())
  except OSError as error:
    print(type(error).__name__)`;
    const inside = await place.run("exec", "--cd", join(place.workspace, ".."), "--", "python3", "-c", ask);
    expect(inside.stdout, inside.stderr).toBe("ConnectionRefusedError\n");
    const onHost = await execa("python3", ["-c", ask]);
    expect(JSON.parse(onHost.stdout)).toMatchObject({ kind: "opened" });
  });
});

it("brig run --publish makes a server of its session reachable", async () => {
  const place = await openPlace();
  const script = join(place.workspace, "script.json");
  const calls = [
    { exec_command: { cmd: "python3 -m http.server 3000 --bind 127.0.0.1", yield_time_ms: 250 } },
  ];
  const wait = [{ shell: { command: ["sleep", "240"], timeout_ms: 300_000 } }];
  await writeFile(script, JSON.stringify({ steps: [{ calls }, { calls: wait }, { text: "done" }] }));
  const running = place.start("run", "--publish", "0:3000", "--script", script, "go");
  let said = "";
  running.stderr.on("data", (text) => {
    said += String(text);
  });
  await expect.poll(() => said, { timeout: 60_000 }).toContain("brig: port 3000 of the sandbox is at");
  const url = /is at (http:\S+)/.exec(said)?.[1] ?? "";
  await expect.poll(async () => (await fetch(url).catch(() => null))?.status).toBe(200);
  running.kill("SIGTERM");
  await running;
  await expect(fetch(url)).rejects.toThrow();
  expect(await place.listed()).toEqual([]);
});

it("brig run --publish of a port that is taken runs nothing", async () => {
  const place = await openPlace();
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const script = join(place.workspace, "script.json");
  const steps = [{ calls: [{ exec_command: { cmd: "echo ran > ran" } }] }, { text: "done" }];
  await writeFile(script, JSON.stringify({ steps }));
  const call = await place.run("run", "--publish", `${port}:3000`, "--script", script, "go");
  taken.close();
  expect(call.stderr).toContain(`another program on this machine listens on port ${port} of 127.0.0.1`);
  expect(await readdir(place.workspace)).toEqual(["script.json"]);
  expect(call.exitCode).not.toBe(0);
});
