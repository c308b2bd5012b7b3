import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LABELS } from "../../../src/sandbox/labels.js";
import { Connection, MAX_MESSAGE_BYTES } from "../../../src/services/exec-server/connection.js";
import { SessionList } from "../../../src/services/exec-server/session-list.js";
import { testEngine } from "../../support/engine.js";
import {
  commonOptions,
  type ExecClient,
  openStdioClient,
  openWorkspaceClient,
  sandboxOf,
  startParams,
  uri,
  type WorkspaceClient,
} from "../../support/exec-client.js";
import { temporaryDirectory } from "../../support/sandbox.js";

let opened: WorkspaceClient;
let client: ExecClient;
let workspace: string;
let count = 0;

beforeAll(async () => {
  opened = await openWorkspaceClient();
  ({ client, workspace } = opened);
});
afterAll(async () => {
  await opened[Symbol.asyncDispose]();
});

async function start(command: string, more: Record<string, unknown> = {}): Promise<string> {
  const id = `p${count++}`;
  expect(await client.call("process/start", startParams(id, command, { workspace, ...more }))).toEqual({
    processId: id,
  });
  return id;
}

async function run(command: string, more: Record<string, unknown> = {}) {
  return await client.closed(await start(command, more));
}

describe("a process", () => {
  it("has its output and its end told in order", async () => {
    const id = await start("echo out; echo err >&2; exit 3");
    expect(await client.closed(id)).toMatchObject({ exitCode: 3, sandboxDenied: false });
    expect(client.output(id, "stdout")).toBe("out\n");
    expect(client.output(id, "stderr")).toBe("err\n");
    const seqs = client.notifications
      .filter(({ params }) => params.processId === id)
      .map(({ params }) => params.seq);
    expect(seqs).toEqual(seqs.map((_, at) => at + 1));
    expect(client.notifications.at(-1)).toEqual({
      method: "process/closed",
      params: { processId: id, seq: seqs.length },
    });
  });

  it("starts where it is told to, with the environment that it is given", async () => {
    await mkdir(join(workspace, "sub"), { recursive: true });
    const { output } = await run("pwd; echo $GIVEN $HOME; env | grep -c SECRET_OF_HOST", {
      cwd: uri(join(workspace, "sub")),
      env: { GIVEN: "yes" },
    });
    expect(output).toBe(`${join(workspace, "sub")}\nyes /home/brig\n0\n`);
  });

  it("loses no byte of a megabyte", async () => {
    const { output } = await run("seq 1 150000");
    expect(output).toBe(Array.from({ length: 150_000 }, (_, at) => `${at + 1}\n`).join(""));
  });

  it("on a terminal is written to", async () => {
    const id = await start("stty size; read line; echo got $line", { tty: true });
    await client.until(() => client.output(id).includes("24 80"));
    expect(await client.call("process/write", { processId: id, chunk: btoa("hey\n"), writeId: "1" })).toEqual(
      {
        status: "accepted",
      },
    );
    expect(await client.closed(id)).toMatchObject({ exitCode: 0, output: "24 80\r\nhey\r\ngot hey\r\n" });
    expect(client.of(id, "process/output").every(({ stream }) => stream === "pty")).toBe(true);
  });

  it.each([
    ["trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done", 7],
    ["trap 'exit 7' INT; echo ready; sleep 60", 7],
    ["echo ready; exec sleep 60", 130],
  ])("on a terminal ends by ctrl-C with its own exit code: %s", async (script, exitCode) => {
    for (const interrupt of ["write", "signal"]) {
      const id = await start(script, { tty: true });
      await client.until(() => client.output(id).includes("ready"));
      await (interrupt === "write"
        ? client.call("process/write", { processId: id, chunk: btoa("\x03"), writeId: "1" })
        : client.call("process/signal", { processId: id, signal: "interrupt" }));
      expect(await client.closed(id), interrupt).toMatchObject({ exitCode });
    }
  });

  it("on a terminal in raw mode reads ctrl-C as a key", async () => {
    const id = await start("stty raw; echo ready; head -c 1 >/dev/null; exit 9", { tty: true });
    await client.until(() => client.output(id).includes("ready"));
    await client.call("process/write", { processId: id, chunk: btoa("\x03"), writeId: "1" });
    expect(await client.closed(id)).toMatchObject({ exitCode: 9 });
  });

  it("on a terminal has another size when the client says so", async () => {
    const id = await start("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", {
      tty: true,
    });
    await client.until(() => client.output(id).includes("ready"));
    expect(await client.call("process/resize", { processId: id, rows: 40, cols: 100 })).toEqual({});
    expect((await client.closed(id)).output).toContain("40 100");
  });

  it("with a pipe is written to; without one it is not", async () => {
    const piped = await start("head -n 1", { pipeStdin: true });
    expect(
      await client.call("process/write", { processId: piped, chunk: btoa("line\n"), writeId: "1" }),
    ).toEqual({
      status: "accepted",
    });
    expect((await client.closed(piped)).output).toBe("line\n");
    const closed = await start("cat; sleep 5");
    expect(await client.call("process/write", { processId: closed, chunk: btoa("x"), writeId: "1" })).toEqual(
      {
        status: "stdinClosed",
      },
    );
    await client.call("process/terminate", { processId: closed });
    expect(await client.call("process/write", { processId: "none", chunk: "", writeId: "1" })).toEqual({
      status: "unknownProcess",
    });
  });

  it("is interrupted", async () => {
    const id = await start("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done");
    await client.until(() => client.output(id).includes("ready"));
    expect(await client.call("process/signal", { processId: id, signal: "interrupt" })).toEqual({});
    expect(await client.closed(id)).toMatchObject({ exitCode: 7, output: "ready\ncaught\n" });
  });

  it("is ended with everything that it started", async () => {
    const id = await start("setsid sleep 4711 & echo ready; sleep 4711");
    await client.until(() => client.output(id).includes("ready"));
    expect(await client.call("process/terminate", { processId: id })).toEqual({ running: true });
    const { exitCode } = await client.closed(id);
    expect(exitCode).toBeGreaterThan(128);
    expect((await run("pgrep -fc '^sleep 4711'")).output).toBe("0\n");
    expect(await client.call("process/terminate", { processId: id })).toEqual({ running: false });
    expect(await client.call("process/terminate", { processId: "none" })).toEqual({ running: false });
  });

  it("is read again, from a number on, and waited for", async () => {
    const id = await start("echo one; sleep 0.3; echo two; exit 5");
    const first = await client.call("process/read", {
      processId: id,
      afterSeq: null,
      maxBytes: 1,
      waitMs: 10_000,
    });
    expect(first).toMatchObject({
      chunks: [{ seq: 1, stream: "stdout", chunk: btoa("one\n") }],
      nextSeq: 2,
      exited: false,
    });
    const second = await client.call("process/read", {
      processId: id,
      afterSeq: 1,
      maxBytes: null,
      waitMs: 10_000,
    });
    expect(second).toMatchObject({ chunks: [{ seq: 2, chunk: btoa("two\n") }] });
    await client.closed(id);
    expect(await client.call("process/read", { processId: id, afterSeq: 2, waitMs: 10_000 })).toEqual({
      chunks: [],
      nextSeq: 5,
      exited: true,
      exitCode: 5,
      closed: true,
      failure: null,
      sandboxDenied: false,
    });
  });

  it("that says why it was denied something is known to be denied", async () => {
    expect(await run("touch /etc/x")).toMatchObject({ exitCode: 1, sandboxDenied: true });
    expect(await run("touch /etc/x", { mode: "danger-full-access" })).toMatchObject({
      exitCode: 0,
      sandboxDenied: false,
    });
  });

  it("whose program is missing ends with 127", async () => {
    expect(await run("", { argv: ["/no/such"] })).toMatchObject({ exitCode: 127 });
  });

  it.each<[string, object, RegExp]>([
    ["without a command", { argv: [] }, /argv must not be empty/],
    ["with a path that is no URI", { cwd: "/tmp" }, /cwd: .*not a file:\/\/ URI/],
    ["where there is no directory", { cwd: "file:///no/such" }, /^No such file or directory \(os error 2\)$/],
    ["where there is a file", { cwd: "file:///etc/passwd" }, /^Not a directory \(os error 20\)$/],
    ["under a managed network", { enforceManagedNetwork: true }, /managed network/],
    [
      "with an unknown permission profile",
      { sandbox: { permissions: { type: "magic" } } },
      /sandbox\.permissions/,
    ],
  ])("is refused %s", async (_, more, message) => {
    const { error } = await client.ask(
      "process/start",
      startParams(`bad${count++}`, "true", { workspace, ...more }),
    );
    expect(error?.message).toMatch(message);
  });

  it("is refused under a name that is taken", async () => {
    const id = await start("sleep 1");
    const { error } = await client.ask("process/start", startParams(id, "true", { workspace }));
    expect(error).toMatchObject({ code: -32600, message: `process ${id} already exists` });
  });
});

describe("the permission profile", () => {
  const attempt = "touch inside .git/x; mkdir -p .agents/x; touch /var/x; (echo > /dev/tcp/1.1.1.1/80) 2>&1";

  it("of workspace-write: the workspace, but what steers git and agents", async () => {
    const { output } = await run(attempt);
    expect(output).toMatch(/touch: cannot touch '\.git\/x': Read-only file system/);
    expect(output).toMatch(/mkdir: cannot create directory ‘\.agents\/x’: Read-only file system/);
    expect(output).toMatch(/touch: cannot touch '\/var\/x': Read-only file system/);
    expect(output).toMatch(/Network is unreachable/);
    expect(existsSync(join(workspace, "inside"))).toBe(true);
  });

  it("of read-only: nothing", async () => {
    const { output } = await run("touch ro-attempt", { mode: "read-only" });
    expect(output).toMatch(/touch: cannot touch 'ro-attempt': Read-only file system/);
    expect(existsSync(join(workspace, "ro-attempt"))).toBe(false);
  });

  it("none: root in the container", async () => {
    const { output } = await run("id -u; touch /var/x full-attempt && echo done", {
      mode: "danger-full-access",
    });
    expect(output).toBe("0\ndone\n");
    expect(existsSync(join(workspace, "full-attempt"))).toBe(true);
  });

  it("with a further directory: that one too, and nothing beside it", async () => {
    await using other = await temporaryDirectory();
    const entry = { path: { type: "path", path: other.path }, access: "write" };
    const sandbox = sandboxOf("workspace-write", workspace, { entries: [entry] });
    const { output } = await run(`touch ${other.path}/a ${other.path}/.git/b`, { sandbox });
    expect(output).toMatch(/Read-only file system/);
    expect(existsSync(join(other.path, "a"))).toBe(true);
  });

  it("that no mount can enforce: the process does not start", async () => {
    await writeFile(join(workspace, "secret"), "s");
    const entry = { path: { type: "path", path: join(workspace, "secret") }, access: "none" };
    const sandbox = sandboxOf("workspace-write", workspace, { entries: [entry] });
    const { error } = await client.ask(
      "process/start",
      startParams("refused", "cat secret", { workspace, sandbox }),
    );
    expect(error).toMatchObject({
      code: -32600,
      message: expect.stringMatching(/cannot enforce .* access "none"/),
    });
    expect(client.notifications.some(({ params }) => params.processId === "refused")).toBe(false);
  });

  it("of another directory: a sandbox of its own", async () => {
    await using other = await temporaryDirectory();
    await writeFile(join(other.path, "theirs"), "t");
    const id = `p${count++}`;
    await client.call("process/start", startParams(id, `ls; ls ${workspace}`, { workspace: other.path }));
    const { output } = await client.closed(id);
    expect(output).toMatch(/^theirs\n/);
    expect(output).toMatch(/No such file or directory/);
  });

  it("shows nothing of the host but the workspace", async () => {
    await using other = await temporaryDirectory();
    await writeFile(join(other.path, "private"), "p");
    expect((await run(`cat ${other.path}/private`)).output).toMatch(/No such file or directory/);
  });
});

const at = (name: string) => uri(join(workspace, name));

describe("files", () => {
  const writes = () => sandboxOf("workspace-write", workspace);

  it("are written, read, listed, copied and removed", async () => {
    await client.call("fs/createDirectory", { path: at("d/e"), recursive: true, sandbox: writes() });
    await client.call("fs/writeFile", { path: at("d/e/f"), dataBase64: btoa("text\0"), sandbox: writes() });
    expect(await readFile(join(workspace, "d/e/f"), "latin1")).toBe("text\0");
    expect(await client.call("fs/readFile", { path: at("d/e/f"), sandbox: null })).toEqual({
      dataBase64: btoa("text\0"),
    });
    await client.call("fs/copy", {
      sourcePath: at("d/e/f"),
      destinationPath: at("d/g"),
      recursive: false,
      sandbox: writes(),
    });
    await client.call("fs/copy", {
      sourcePath: at("d/e"),
      destinationPath: at("d/h"),
      recursive: true,
      sandbox: writes(),
    });
    const { entries } = await client.call("fs/readDirectory", { path: at("d"), sandbox: null });
    expect(
      (entries as { fileName: string }[]).toSorted((a, b) => (a.fileName < b.fileName ? -1 : 1)),
    ).toEqual([
      { fileName: "e", isDirectory: true, isFile: false },
      { fileName: "g", isDirectory: false, isFile: true },
      { fileName: "h", isDirectory: true, isFile: false },
    ]);
    expect(await client.call("fs/getMetadata", { path: at("d/g"), sandbox: null })).toEqual({
      isDirectory: false,
      isFile: true,
      isSymlink: false,
      size: 5,
      createdAtMs: 0,
      modifiedAtMs: expect.any(Number),
    });
    expect(await client.call("fs/canonicalize", { path: at("d/e/../g"), sandbox: null })).toEqual({
      path: at("d/g"),
    });
    await client.call("fs/remove", { path: at("d"), recursive: true, force: false, sandbox: writes() });
    expect(existsSync(join(workspace, "d"))).toBe(false);
  });

  it.each<[string, string, object, object]>([
    [
      "missing",
      "fs/readFile",
      { path: "none" },
      { code: -32004, message: "No such file or directory (os error 2)" },
    ],
    [
      "directories",
      "fs/readFile",
      { path: "." },
      { code: -32600, message: expect.stringMatching(/is not a file$/) },
    ],
    ["missing, to be removed", "fs/remove", { path: "none", force: false }, { code: -32004 }],
    ["no files", "fs/readDirectory", { path: "file" }, { message: "Not a directory (os error 20)" }],
    [
      "protected",
      "fs/writeFile",
      { path: ".git/x", dataBase64: "" },
      { message: "Read-only file system (os error 30)" },
    ],
    ["no base64", "fs/writeFile", { path: "x", dataBase64: "?" }, { code: -32602 }],
    [
      "directories, to be copied as files",
      "fs/copy",
      { sourcePath: ".", destinationPath: "x", recursive: false },
      { code: -32600 },
    ],
  ])("that are %s are an error of their own", async (_, method, params, error) => {
    await writeFile(join(workspace, "file"), "");
    const paths = Object.entries(params).map(([name, value]) => [
      name,
      /[pP]ath$/.test(name) ? at(String(value)) : value,
    ]);
    const given = { ...Object.fromEntries(paths), sandbox: writes() };
    expect((await client.ask(method, given)).error).toMatchObject(error);
  });

  it("outside of the workspace are those of the image", async () => {
    await using other = await temporaryDirectory();
    await writeFile(join(other.path, "private"), "p");
    for (const sandbox of [null, writes()])
      expect(
        (await client.ask("fs/readFile", { path: uri(join(other.path, "private")), sandbox })).error,
      ).toMatchObject({
        code: -32004,
      });
    const written = await client.ask("fs/writeFile", {
      path: "file:///etc/x",
      dataBase64: "",
      sandbox: writes(),
    });
    expect(written.error?.message).toBe("Read-only file system (os error 30)");
  });

  it("are not changed under a read-only profile", async () => {
    const sandbox = sandboxOf("read-only", workspace);
    const { error } = await client.ask("fs/writeFile", { path: at("ro"), dataBase64: "", sandbox });
    expect(error?.message).toBe("Read-only file system (os error 30)");
  });

  it("do not lead out of the workspace by a link", async () => {
    await using other = await temporaryDirectory();
    await writeFile(join(other.path, "private"), "p");
    await run(`ln -sfn ${other.path} out`);
    expect((await client.ask("fs/readFile", { path: at("out/private"), sandbox: null })).error).toMatchObject(
      { code: -32004 },
    );
  });

  it("that only keep a name from being made are missing for the client", async () => {
    await run("true");
    expect(existsSync(join(workspace, ".aws"))).toBe(true);
    expect((await client.ask("fs/getMetadata", { path: at(".aws"), sandbox: null })).error).toMatchObject({
      code: -32004,
    });
  });
});

describe("bad input", () => {
  it("unknown methods are refused, and so are those of every object", async () => {
    for (const method of ["fs/format", "constructor", "__proto__", ""])
      expect((await client.ask(method)).error).toMatchObject({
        code: -32601,
        message: expect.stringContaining("no method"),
      });
  });

  it("a second initialize is refused", async () => {
    expect((await client.ask("initialize", { clientName: "again" })).error).toMatchObject({
      code: -32600,
      message: "initialize may only be sent once per connection",
    });
  });

  it("an unknown notification, no JSON and a message that is too long are refused, and the next one is answered", async () => {
    const before = client.strays.length;
    client.sendText('{"method":"fs/unknown"}');
    client.sendText("{");
    client.sendText("x".repeat(MAX_MESSAGE_BYTES + 1));
    await client.until(() => client.strays.length === before + 3);
    expect(client.strays.slice(before).map(({ message }) => message)).toEqual([
      "unknown notification fs/unknown",
      "the message is not JSON",
      `a message may have at most ${MAX_MESSAGE_BYTES} bytes`,
    ]);
    expect((await run("echo on")).output).toBe("on\n");
  });

  it("nothing is done before initialize", async () => {
    await using fresh = await openStdioClient(workspace);
    expect((await fresh.client.ask("process/start", {})).error).toMatchObject({ code: -32600 });
    expect((await fresh.client.ask("initialize", {})).error).toMatchObject({ code: -32602 });
    expect(
      (await fresh.client.ask("initialize", { clientName: "x", resumeSessionId: "y" })).error,
    ).toMatchObject({
      message: "unknown session id y",
    });
    await fresh.client.initialize();
  });

  it("more requests than there may be are refused, and do not keep a process from being ended", async () => {
    await using fresh = await openStdioClient(workspace);
    await fresh.client.initialize();
    const params = startParams("deaf", "sleep 600", { workspace, pipeStdin: true });
    await fresh.client.call("process/start", params);
    const chunk = Buffer.alloc(64 * 1024).toString("base64");
    const writes = Array.from({ length: 600 }, () =>
      fresh.client.ask("process/write", { processId: "deaf", chunk }),
    );
    expect(await fresh.client.call("process/terminate", { processId: "deaf" })).toEqual({ running: true });
    const refused = (await Promise.all(writes)).filter(({ error }) => error !== undefined);
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map(({ error }) => error?.message))).toEqual(
      new Set(["512 requests wait for their answers already"]),
    );
    expect(await fresh.client.closed("deaf")).toMatchObject({ exitCode: 143 });
  });

  it("more bytes of requests than there may be are refused", async () => {
    await using fresh = await openStdioClient(workspace);
    await fresh.client.initialize();
    const params = startParams("deaf", "sleep 600", { workspace, pipeStdin: true });
    await fresh.client.call("process/start", params);
    const chunk = Buffer.alloc(20 * 1024 * 1024).toString("base64");
    const writes = Array.from({ length: 10 }, () =>
      fresh.client.ask("process/write", { processId: "deaf", chunk }),
    );
    expect(await fresh.client.call("process/terminate", { processId: "deaf" })).toEqual({ running: true });
    const refused = (await Promise.all(writes)).filter(({ error }) => error !== undefined);
    expect(refused.map(({ error }) => error?.message)).toEqual([
      "requests of more than 268435456 bytes would wait for their answers",
    ]);
  });

  it("no more long answers are made than a client takes", async () => {
    await writeFile(join(workspace, "long"), Buffer.alloc(100_000));
    const sessions = new SessionList({
      sandbox: await commonOptions(),
      directory: workspace,
      isResumable: false,
    });
    const taken: string[] = [];
    let take: () => void = () => undefined;
    const isTaken = new Promise<void>((resolve) => {
      take = resolve;
    });
    let mark: () => void = () => undefined;
    const isMarked = new Promise<void>((resolve) => {
      mark = resolve;
    });
    const connection = new Connection(sessions, async (text) => {
      if (text.startsWith('{"id":"marker"')) mark();
      if (!text.includes("dataBase64")) return;
      taken.push(text);
      await isTaken;
    });
    const ask = (id: string | number, method: string, params: object) =>
      connection.receive(JSON.stringify({ id, method, params }));
    ask(0, "initialize", { clientName: "slow" });
    for (let id = 1; id <= 12; id++) ask(id, "fs/readFile", { path: at("long") });
    await expect.poll(() => taken.length).toBe(4);
    ask("marker", "fs/getMetadata", { path: at("long") });
    await isMarked;
    expect(taken).toHaveLength(4);
    take();
    await expect.poll(() => taken.length).toBe(12);
    connection.close();
    await sessions.close();
  });

  it("a client that goes away ends the service, however many requests are unanswered", async () => {
    const fresh = await openStdioClient(workspace);
    await fresh.client.initialize();
    await fresh.client.call("process/start", startParams("slow", "sleep 600", { workspace }));
    for (let at = 0; at < 600; at++)
      void fresh.client.ask("process/read", { processId: "slow", waitMs: 600_000 });
    fresh.hangUp();
    await fresh.ended;
  });

  it("more processes than there may be are refused", async () => {
    await using fresh = await openStdioClient(workspace);
    await fresh.client.initialize();
    const starts = Array.from({ length: 257 }, (_, at) =>
      fresh.client.ask("process/start", startParams(`n${at}`, "sleep 60", { workspace })),
    );
    const refused = (await Promise.all(starts)).filter(({ error }) => error !== undefined);
    expect(refused.map(({ error }) => error?.message)).toEqual(["256 processes are running already"]);
  });
});

it("a process whose sandbox is killed ends, with the reason, and the next one gets a new sandbox", async () => {
  await using work = await temporaryDirectory();
  await using fresh = await openStdioClient(work.path);
  await fresh.client.initialize();
  const engine = await testEngine();
  const own = async () =>
    (await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`])).map(({ id }) => id);
  const before = await own();
  await fresh.client.call("process/start", startParams("a", "hostname; sleep 600", { workspace: work.path }));
  await fresh.client.until(() => fresh.client.output("a") !== "");
  for (const id of await own()) if (!before.includes(id)) await engine.removeContainer(id);
  const ended = await fresh.client.closed("a");
  expect(ended).toMatchObject({ exitCode: 137, output: expect.stringMatching(/^brig\nbrig: .+\n$/) });
  await fresh.client.call("process/start", startParams("b", "echo again", { workspace: work.path }));
  expect((await fresh.client.closed("b")).output).toBe("again\n");
});

describe("a client that goes away", () => {
  it("in the middle of calls leaves nothing running", async () => {
    await using work = await temporaryDirectory();
    const fresh = await openStdioClient(work.path);
    await fresh.client.initialize();
    const params = startParams("a", "while :; do date +%N > beat; sleep 0.02; done", {
      workspace: work.path,
    });
    await fresh.client.call("process/start", params);
    void fresh.client.ask("process/read", { processId: "a", afterSeq: 0, waitMs: 600_000 });
    void fresh.client.ask(
      "process/start",
      startParams("b", "sleep 600", { workspace: work.path, mode: "read-only" }),
    );
    await expect.poll(() => existsSync(join(work.path, "beat"))).toBe(true);
    fresh.hangUp();
    await fresh.ended;
    const last = await readFile(join(work.path, "beat"), "utf8");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await readFile(join(work.path, "beat"), "utf8")).toBe(last);
    expect(existsSync(join(work.path, ".git"))).toBe(false);
  });

  it("while its first sandbox starts leaves nothing", async () => {
    await using work = await temporaryDirectory();
    const fresh = await openStdioClient(work.path);
    await fresh.client.initialize();
    void fresh.client.ask("process/start", startParams("a", "sleep 600", { workspace: work.path }));
    fresh.hangUp();
    await fresh.ended;
  });
});
