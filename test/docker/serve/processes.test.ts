import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { openServed, type Served } from "../../support/served.js";
import { openSocket, type SocketClient } from "../../support/web-socket-client.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await served.client.createSandbox({ env: { GIVEN: "to all", GONE: "x" } });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

interface Sent {
  token?: string;
  body?: object | Buffer;
}

/** A request about the processes of the sandbox, and its answer. */
async function send(method: string, path = "", { token = served.tokens[0], body }: Sent = {}) {
  const response = await fetch(`${served.url}/v1/sandboxes/${sandbox.id}/processes${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    body: body === undefined || body instanceof Buffer ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, answer: text === "" ? null : JSON.parse(text) };
}

async function start(argv: string[], more: object = {}): Promise<string> {
  const { status, answer } = await send("POST", "", { body: { argv, ...more } });
  expect([status, answer]).toEqual([201, expect.objectContaining({ argv })]);
  return answer.id;
}

/** Everything that it has printed after the cursor, once it has ended. */
async function wholeOutput(id: string, after = 0): Promise<{ text: string; next: number; lost: number }> {
  const found = { text: "", next: after, lost: 0 };
  for (;;) {
    const { answer } = await send("GET", `/${id}/output?after=${found.next}&waitMs=30000`);
    for (const { data } of answer.chunks) found.text += Buffer.from(data, "base64").toString("latin1");
    found.lost += answer.lost;
    found.next = answer.next;
    if (answer.ended) return found;
  }
}

const ended = async (id: string) => (await send("GET", `/${id}?waitMs=60000`)).answer;

async function isRunning(argument: string): Promise<boolean> {
  return (await sandbox.exec(["pgrep", "-f", argument])).exitCode === 0;
}

describe("a process that runs in the background", () => {
  it("has variables, a directory, both outputs, and an end that can be waited for", async () => {
    const id = await start(
      ["sh", "-c", 'pwd; echo "$GIVEN $OWN $(printenv GONE || echo gone)" >&2; exit 3'],
      {
        cwd: "/tmp",
        env: { OWN: "own", GONE: null },
      },
    );
    expect(await ended(id)).toMatchObject({ id, state: "ended", exitCode: 3, signal: null, timedOut: false });
    const { answer } = await send("GET", `/${id}/output`);
    const chunks = answer.chunks.map(({ stream, data }: { stream: string; data: string }) => [
      stream,
      Buffer.from(data, "base64").toString(),
    ]);
    expect(chunks).toEqual([
      ["stdout", "/tmp\n"],
      ["stderr", "to all own gone\n"],
    ]);
    expect(answer).toMatchObject({ next: 21, lost: 0, ended: true });
  });

  it("runs on while other requests are answered, and is listed", async () => {
    const id = await start(["sh", "-c", "echo begun; sleep 4711"]);
    const { answer } = await send("GET", `/${id}`);
    expect(answer).toEqual({
      ...{ id, argv: ["sh", "-c", "echo begun; sleep 4711"], state: "running" },
      ...{ exitCode: null, signal: null, timedOut: false },
    });
    expect((await send("GET")).answer.processes).toContainEqual(answer);
    expect(await isRunning("sleep 4711")).toBe(true);
    const waited = await send("GET", `/${id}?waitMs=50`);
    expect(waited.answer.state).toBe("running");
    expect((await send("DELETE", `/${id}`)).status).toBe(204);
  });

  it("is ended with its tree, and its output can still be read", async () => {
    const id = await start(["sh", "-c", "sleep 4712 & echo begun; setsid sleep 4713 & wait"]);
    await expect.poll(() => isRunning("sleep 4713"), { timeout: 30_000 }).toBe(true);
    expect((await send("DELETE", `/${id}`)).status).toBe(204);
    expect([await isRunning("sleep 4712"), await isRunning("sleep 4713")]).toEqual([false, false]);
    expect((await send("GET", `/${id}`)).answer).toMatchObject({ state: "ended", signal: "SIGTERM" });
    expect((await wholeOutput(id)).text).toBe("begun\n");
    expect((await send("DELETE", `/${id}`)).status).toBe(204);
  });

  it("gets a signal, and is ended when its time is over", async () => {
    const id = await start([
      "sh",
      "-c",
      "trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.1; done",
    ]);
    await send("GET", `/${id}/output?waitMs=30000`);
    for (const signal of ["SIGNOTHING", "9", "", "SIGUSR1; true"])
      expect((await send("POST", `/${id}/signal`, { body: { signal } })).status).toBe(400);
    expect((await send("POST", `/${id}/signal`, { body: { signal: "SIGUSR1" } })).status).toBe(204);
    expect(await ended(id)).toMatchObject({ exitCode: 5 });
    // The signal goes to all of the group, and the shell says so.
    expect((await wholeOutput(id)).text).toMatch(/^ready\n(?:.*\n)?got it\n$/);
    const limited = await start(["sleep", "1000"], { timeoutMs: 200 });
    expect(await ended(limited)).toMatchObject({ exitCode: 124, timedOut: true });
  });

  it("whose program is missing is one that has ended with 127", async () => {
    const id = await start(["no-such-program"]);
    expect(await ended(id)).toMatchObject({ state: "ended", exitCode: 127 });
    expect((await wholeOutput(id)).text).toContain("no-such-program: command not found");
  });

  it("whose directory is missing is none", async () => {
    for (const cwd of ["/nowhere", "/etc/passwd", "/root/x"]) {
      const { status, answer } = await send("POST", "", { body: { argv: ["true"], cwd } });
      expect([status, answer.error.code]).toEqual([400, "exec.bad-cwd"]);
    }
    for (const body of [
      { argv: [] },
      { argv: ["true"], cwd: "tmp" },
      { argv: ["true"], pty: { rows: 0, cols: 1 } },
      {},
    ])
      expect((await send("POST", "", { body })).status).toBe(400);
  });
});

describe("output", () => {
  it("is read from any byte on, as often as one likes, also after a disconnect", async () => {
    const id = await start(["sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done"]);
    const gone = new AbortController();
    const path = `${served.url}/v1/sandboxes/${sandbox.id}/processes/${id}/output?after=35&waitMs=30000`;
    const cut = fetch(path, {
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      signal: gone.signal,
    });
    setTimeout(() => gone.abort(), 50);
    await expect(cut).rejects.toThrow();
    const text = "line 1\nline 2\nline 3\nline 4\nline 5\n";
    expect(await wholeOutput(id)).toEqual({ text, next: 35, lost: 0 });
    for (const after of [0, 1, 9, 34, 35]) {
      const expected = { text: text.slice(after), next: 35, lost: 0 };
      expect(await wholeOutput(id, after)).toEqual(expected);
      expect(await wholeOutput(id, after)).toEqual(expected);
    }
    const beyond = await send("GET", `/${id}/output?after=1000`);
    expect(beyond.answer).toEqual({ chunks: [], next: 1000, lost: 0, ended: true });
    for (const query of ["after=-1", "after=x", "after=1e999", "waitMs=9999999", "maxBytes=0", "from=1"])
      expect((await send("GET", `/${id}/output?${query}`)).status).toBe(400);
  });

  it("comes to two readers that wait, as soon as it is there", async () => {
    const id = await start(["sh", "-c", "read line; echo got $line; sleep 1000"]);
    const reading = [1, 2].map(async () => await send("GET", `/${id}/output?waitMs=30000`));
    await send("POST", `/${id}/stdin`, { body: Buffer.from("it\n") });
    for (const { answer } of await Promise.all(reading))
      expect(answer).toMatchObject({ next: 7, ended: false, chunks: [{ stream: "stdout" }] });
    await send("DELETE", `/${id}`);
  });

  it("of one's own bytes is the same bytes", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    const id = await start(["cat"]);
    await send("POST", `/${id}/stdin`, { body: bytes });
    await send("DELETE", `/${id}/stdin`);
    expect(Buffer.from((await wholeOutput(id)).text, "latin1")).toEqual(bytes);
  });
});

describe("input", () => {
  it("is taken in order, until it is closed", async () => {
    const id = await start(["sh", "-c", "cat; echo end"]);
    for (const text of ["one ", "two ", "three\n"])
      expect((await send("POST", `/${id}/stdin`, { body: Buffer.from(text) })).status).toBe(204);
    expect((await send("DELETE", `/${id}/stdin`)).status).toBe(204);
    expect((await wholeOutput(id)).text).toBe("one two three\nend\n");
  });

  it("of many megabytes is taken as fast as the process reads it", async () => {
    const id = await start(["sh", "-c", "sleep 0.5; sha256sum"]);
    const bytes = Buffer.alloc(20_000_000, "brig");
    expect((await send("POST", `/${id}/stdin`, { body: bytes })).status).toBe(204);
    await send("DELETE", `/${id}/stdin`);
    const { createHash } = await import("node:crypto");
    expect((await wholeOutput(id)).text).toContain(createHash("sha256").update(bytes).digest("hex"));
  });

  it("that comes too late is refused", async () => {
    const closed = await start(["sleep", "1000"], { stdin: "closed" });
    const shut = await start(["sh", "-c", "cat; sleep 1000"]);
    expect((await send("DELETE", `/${shut}/stdin`)).status).toBe(204);
    const over = await start(["true"]);
    await ended(over);
    for (const id of [closed, shut, over]) {
      const { status, answer } = await send("POST", `/${id}/stdin`, { body: Buffer.from("x") });
      expect([status, answer.error.code]).toEqual([409, "exec.invalid"]);
      await send("DELETE", `/${id}`);
    }
  });

  it("is at its end at once if none was asked for", async () => {
    const id = await start(["sh", "-c", "cat; echo end"], { stdin: "closed" });
    expect((await wholeOutput(id)).text).toBe("end\n");
  });
});

describe("a terminal", () => {
  it("has the size that it was given, takes keys, and tells its program of another size", async () => {
    const script = "stty size; trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done";
    const id = await start(["bash", "-c", script], { pty: { rows: 30, cols: 100 } });
    const text = async () =>
      Buffer.from((await send("GET", `/${id}/output`)).answer.chunks[0]?.data ?? "", "base64").toString();
    await expect.poll(text, { timeout: 30_000 }).toBe("30 100\r\nready\r\n");
    expect((await send("POST", `/${id}/resize`, { body: { rows: 50, cols: 132 } })).status).toBe(204);
    await expect.poll(text, { timeout: 30_000 }).toBe("30 100\r\nready\r\n50 132\r\n");
    // Ctrl-C, as a key.
    expect((await send("POST", `/${id}/stdin`, { body: Buffer.from("\x03") })).status).toBe(204);
    expect(await ended(id)).toMatchObject({ signal: "SIGINT", exitCode: 130 });
    const { answer } = await send("GET", `/${id}/output`);
    expect(new Set(answer.chunks.map(({ stream }: { stream: string }) => stream))).toEqual(new Set(["pty"]));
  });

  it("reads the end of its input as from ctrl-D", async () => {
    const id = await start(["sh", "-c", "cat; echo end"], { pty: { rows: 30, cols: 100 } });
    await send("POST", `/${id}/stdin`, { body: Buffer.from("a line\n") });
    expect((await send("DELETE", `/${id}/stdin`)).status).toBe(204);
    expect((await wholeOutput(id)).text).toBe("a line\r\na line\r\nend\r\n");
    expect(await ended(id)).toMatchObject({ exitCode: 0 });
  });

  it("is needed to have a size", async () => {
    const id = await start(["sleep", "1000"]);
    const { status, answer } = await send("POST", `/${id}/resize`, { body: { rows: 5, cols: 5 } });
    expect([status, answer.error.code]).toEqual([400, "exec.invalid"]);
    expect((await send("POST", `/${id}/resize`, { body: { rows: 5 } })).status).toBe(400);
    await send("DELETE", `/${id}`);
  });
});

describe("who may reach a process", () => {
  const requests = [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/output"],
    ["POST", "/stdin"],
    ["DELETE", "/stdin"],
    ["POST", "/resize"],
    ["POST", "/signal"],
  ] as const;
  const bodies: Record<string, object> = {
    "/resize": { rows: 1, cols: 1 },
    "/signal": { signal: "SIGKILL" },
  };

  it("is nobody but its client, who is told the same as of one that is not there", async () => {
    const id = await start(["sleep", "1000"]);
    for (const [method, path] of requests) {
      const body = bodies[path];
      const other = await send(method, `/${id}${path}`, { token: served.tokens[1], body });
      expect([path, other.status, other.answer.error.code]).toEqual([path, 404, "serve.unknown"]);
      const unknown = await send(method, `/abcdef${path}`, { body });
      expect([path, unknown.status, unknown.answer.error.code]).toEqual([path, 404, "serve.unknown"]);
      const refused = await send(method, `/${id}${path}`, { token: "wrong", body });
      expect([path, refused.status]).toEqual([path, 401]);
    }
    expect((await send("POST", "", { token: served.tokens[1], body: { argv: ["true"] } })).status).toBe(404);
    expect((await send("GET", "", { token: served.tokens[1] })).status).toBe(404);
    expect((await send("GET", `/${id}`)).answer.state).toBe("running");
    await send("DELETE", `/${id}`);
  });

  it("is not the client of another sandbox of its own by a process's id alone", async () => {
    const id = await start(["sleep", "1000"]);
    await using other = await served.client.createSandbox();
    const response = await fetch(`${served.url}/v1/sandboxes/${other.id}/processes/${id}`, {
      headers: { authorization: `Bearer ${served.tokens[0]}` },
    });
    expect(response.status).toBe(404);
    await send("DELETE", `/${id}`);
  });
});

describe("a WebSocket", () => {
  const attach = async (
    id: string,
    query = "",
    headers: Record<string, string> = {},
  ): Promise<SocketClient> =>
    await openSocket(`${served.url}/v1/sandboxes/${sandbox.id}/processes/${id}/attach${query}`, {
      headers: { authorization: `Bearer ${served.tokens[0]}`, ...headers },
    });

  it("carries output and input, and ends with the exit", async () => {
    const id = await start(["sh", "-c", "echo ready; read line; echo got $line; exit 7"]);
    const client = await attach(id);
    await expect.poll(() => client.text()).toBe("ready\n");
    client.socket.send(Buffer.from("a "));
    client.socket.send(Buffer.from("line\n"));
    expect(await client.closed).toEqual({ code: 1000, reason: "" });
    expect(client.text()).toBe("ready\ngot a line\n");
    expect(client.frames).toEqual([{ type: "exit", exitCode: 7, signal: null }]);
  });

  it("begins at a cursor, also for a process that has ended, and for several clients at once", async () => {
    const id = await start(["echo", "0123456789"]);
    await ended(id);
    const clients = await Promise.all([
      attach(id, "?after=4"),
      attach(id, "?after=4"),
      attach(id, "?after=99"),
    ]);
    for (const { closed } of clients) expect((await closed).code).toBe(1000);
    expect(clients.map((one) => one.text())).toEqual(["456789\n", "456789\n", ""]);
    for (const { frames } of clients) expect(frames).toEqual([{ type: "exit", exitCode: 0, signal: null }]);
  });

  it("changes the size of a terminal", async () => {
    const id = await start(["bash"], { pty: { rows: 20, cols: 80 }, env: { PS1: "" } });
    const client = await attach(id);
    client.socket.send(JSON.stringify({ type: "resize", rows: 44, cols: 123 }));
    client.socket.send(Buffer.from("stty size; exit 3\n"));
    expect((await client.closed).code).toBe(1000);
    expect(client.text()).toContain("44 123\r\n");
    expect(client.frames).toEqual([{ type: "exit", exitCode: 3, signal: null }]);
  });

  it("of a client that goes leaves the process running, and another one goes on where it was", async () => {
    const id = await start(["sh", "-c", "echo one; read line; echo two"]);
    const first = await attach(id);
    await expect.poll(() => first.text()).toBe("one\n");
    first.socket.terminate();
    await send("POST", `/${id}/stdin`, { body: Buffer.from("\n") });
    const second = await attach(id, `?after=${first.text().length}`);
    expect((await second.closed).code).toBe(1000);
    expect(second.text()).toBe("two\n");
  });

  it("passes many megabytes both ways", async () => {
    const id = await start(["cat"]);
    const client = await attach(id);
    const piece = Buffer.alloc(500_000, "x");
    for (let count = 0; count < 20; count++) client.socket.send(piece);
    await expect.poll(() => client.text().length, { timeout: 30_000 }).toBe(10_000_000);
    await send("DELETE", `/${id}/stdin`);
    expect((await client.closed).code).toBe(1000);
  });

  it("says that the process was killed with its sandbox", async () => {
    const other = await served.client.createSandbox();
    const response = await fetch(`${served.url}/v1/sandboxes/${other.id}/processes`, {
      method: "POST",
      headers: { authorization: `Bearer ${served.tokens[0]}` },
      body: JSON.stringify({ argv: ["sleep", "1000"] }),
    });
    const { id } = (await response.json()) as { id: string };
    const client = await openSocket(`${served.url}/v1/sandboxes/${other.id}/processes/${id}/attach`, {
      headers: { authorization: `Bearer ${served.tokens[0]}` },
    });
    await other.delete();
    expect((await client.closed).code).toBe(1000);
    expect(client.frames).toEqual([{ type: "exit", exitCode: 137, signal: "SIGKILL" }]);
  });

  it("is refused before it is one", async () => {
    const id = await start(["sleep", "1000"]);
    const status = async (path: string, headers: Record<string, string>) =>
      await attach(path, "", headers).then(
        () => "open",
        (error: Error) => error.message,
      );
    expect(await status(id, { authorization: "" })).toBe("401");
    expect(await status(id, { authorization: `Bearer ${"1".repeat(32)}` })).toBe("401");
    expect(await status(id, { authorization: `Bearer ${served.tokens[1]}` })).toBe("404");
    expect(await status("abcdef", {})).toBe("404");
    expect(await status(id, { origin: "http://evil.example" })).toBe("403");
    expect(await status(id, { host: "evil.example" })).toBe("403");
    expect(await attach(id, "?after=x").catch((error: Error) => error.message)).toBe("400");
    const elsewhere = openSocket(`${served.url}/v1/sandboxes`, {
      headers: { authorization: `Bearer ${served.tokens[0]}` },
    });
    await expect(elsewhere).rejects.toThrow("404");
    expect((await send("GET", `/${id}/attach`)).status).toBe(426);
    const own = await attach(id, "", { origin: "http://localhost:3000" });
    own.socket.close();
    await own.closed;
    await send("DELETE", `/${id}`);
  });

  it("with a text frame that is not understood is closed, and the process runs on", async () => {
    const id = await start(["cat"]);
    for (const frame of [
      "{]",
      "{}",
      '{"type":"resize","rows":-1,"cols":5}',
      '{"type":"resize","rows":5,"cols":5}',
      '{"type":"kill"}',
    ]) {
      const client = await attach(id);
      client.socket.send(frame);
      expect((await client.closed).code).toBe(1008);
    }
    const closed = await start(["sleep", "1000"], { stdin: "closed" });
    const client = await attach(closed);
    client.socket.send(Buffer.from("x"));
    expect((await client.closed).code).toBe(1008);
    expect((await send("GET", `/${id}`)).answer.state).toBe("running");
    await send("DELETE", `/${id}`);
    await send("DELETE", `/${closed}`);
  });
});

it("a sandbox in which a process runs is not idle, and one in which none runs is", async () => {
  const idle = await served.client.createSandbox({ idleMs: 500 });
  const headers = { authorization: `Bearer ${served.tokens[0]}` };
  const path = `${served.url}/v1/sandboxes/${idle.id}`;
  await fetch(`${path}/processes`, {
    method: "POST",
    headers,
    body: JSON.stringify({ argv: ["sleep", "2"] }),
  });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const states = async () => (await served.client.listSandboxes()).map(({ id }) => id);
  expect(await states()).toContain(idle.id);
  await expect.poll(states, { timeout: 30_000 }).not.toContain(idle.id);
});

it("nothing of this was a fault of the service", () => {
  expect(served.warnings).toEqual([]);
});
