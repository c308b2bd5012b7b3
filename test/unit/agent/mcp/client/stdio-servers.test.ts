import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, type TestContext } from "vitest";
import type { StdioServerSettings } from "../../../../../src/agent/mcp/client/server-settings.js";
import type { Elicit, McpServers } from "../../../../../src/tools/mcp/mcp-servers.js";
// @ts-expect-error: it is plain JavaScript, which Node runs as a program, and has no types.
import { serveHostile } from "../../../../fixtures/mcp-servers/hostile-server.js";
import { heldDuring, whileCollecting } from "../../../../support/garbage.js";
import {
  fixtureServer,
  launchChild,
  launchHere,
  stdioSettings,
  testServers,
  toolOf,
} from "../../../../support/mcp-processes.js";

const text = (value: unknown) => ({
  content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
  structuredContent: undefined,
  isError: false,
});

/** A file to which the server writes its process id at each start. */
function pidFile(finish: TestContext["onTestFinished"]): { path: string; pids: () => number[] } {
  const directory = mkdtempSync(join(tmpdir(), "brig-mcp-"));
  finish(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "pids");
  return { path, pids: () => readFileSync(path, "utf8").trim().split("\n").map(Number) };
}

type Changes = Partial<StdioServerSettings> & { finish?: TestContext["onTestFinished"] };

async function callable(opened: { servers: McpServers; warnings: string[] }) {
  await opened.servers.ready();
  const call = (args: Record<string, unknown> = {}, options = {}) =>
    opened.servers.call(toolOf(opened.servers, "run"), args, options);
  return { ...opened, call };
}

/** A server in this process. Its own program would say the same. */
async function hostile(mode: string, { finish = onTestFinished, ...changes }: Changes = {}) {
  let starts = 0;
  const launch = launchHere((streams) => {
    starts += 1;
    serveHostile(mode, streams);
  });
  const settings = stdioSettings("hostile", [mode], changes);
  return { ...(await callable(testServers({ srv: settings }, { launch, finish }))), starts: () => starts };
}

/** A server with a process of its own, for tests of how it starts, floods and ends. */
async function hostileProcess(mode: string, { finish = onTestFinished, ...changes }: Changes = {}) {
  const file = pidFile(finish);
  const settings = fixtureServer("hostile.mjs", [mode, file.path], changes);
  return { ...(await callable(testServers({ srv: settings }, { finish }))), pids: file.pids };
}

const isRunning = (pid: number | undefined) => {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
};

/** What a server asks the user for. */
const form = {
  message: "Who are you?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Name", minLength: 1 },
      age: { type: "integer", minimum: 0 },
      isSure: { type: "boolean", default: true },
      colour: { type: "string", enum: ["r", "g"], enumNames: ["red", "green"] },
      size: { type: "string", oneOf: [{ const: "s", title: "small" }] },
      tags: { type: "array", items: { type: "string", enum: ["x", "y"] }, maxItems: 1 },
    },
    required: ["name"],
  },
};

describe("a stdio server of MCP", () => {
  it("is started, offers its tools and answers calls", async () => {
    const { servers, call, warnings } = await hostileProcess("careful");
    expect(servers.servers).toMatchObject([
      { name: "srv", status: "ready", error: null, required: false, toolCount: 1 },
    ]);
    expect(servers.tools()).toMatchObject([
      {
        server: "srv",
        name: "run",
        modelName: "srv__run",
        description: "runs run",
        title: null,
        approval: "auto",
      },
    ]);
    expect(await call({ a: 1 })).toEqual(text({ a: 1 }));
    expect(warnings).toEqual([]);
  });

  it("has its instructions cut to a length that a model can read", async () => {
    const { servers } = await hostile("careful");
    expect(servers.servers[0]?.instructions).toHaveLength(16 * 1024);
  });

  it("offers only the tools that the settings allow, with their approval", async () => {
    const { servers } = await hostile("never-answers", {
      enabledTools: ["run", "seen", "absent"],
      disabledTools: ["seen"],
      supportsParallelToolCalls: true,
      defaultApproval: "prompt",
      toolApproval: { run: "approve" },
    });
    expect(servers.tools()).toMatchObject([{ name: "run", approval: "approve", supportsParallel: true }]);
    expect(servers.servers[0]?.toolCount).toBe(1);
  });

  it("lists and reads resources", async () => {
    const { servers } = await hostile("careful");
    expect(await servers.listResources("srv")).toEqual({
      resources: [{ uri: "test://a", name: "a", extra: 1 }],
      nextCursor: "next",
    });
    expect(await servers.listResourceTemplates("srv", { cursor: "x" })).toEqual({
      resourceTemplates: [{ uriTemplate: "test://{a}", name: "t" }],
      nextCursor: null,
    });
    expect(await servers.readResource("srv", "test://a")).toEqual({
      contents: [{ uri: "test://a", text: "content" }],
    });
    await expect(servers.listResources("other")).rejects.toMatchObject({
      code: "mcp.failed",
      hint: 'there are: "srv"',
    });
  });

  it("may be of an old kind that ends when it is asked for its protocol: then it is started once more", async () => {
    const { call, pids } = await hostileProcess("old");
    expect(await call({ a: 1 })).toEqual(text({ a: 1 }));
    expect(pids()).toHaveLength(2);
  });

  it("that ended is started again by the next call, and is known to be old", async () => {
    const { servers, call, pids } = await hostileProcess("old");
    process.kill(pids().at(-1) ?? 0, "SIGKILL");
    await expect.poll(() => servers.servers[0]?.status).toBe("failed");
    expect(servers.servers[0]?.error).toMatchObject({
      code: "mcp.failed",
      message: 'the MCP server "srv" has ended: it was ended by SIGKILL',
    });
    expect(servers.tools()).toHaveLength(1);
    expect(await call({ a: 2 })).toEqual(text({ a: 2 }));
    expect(servers.servers[0]).toMatchObject({ status: "ready", error: null });
    expect(pids()).toHaveLength(3);
  });
});

describe("a server that does not start", () => {
  it("hinders no other one, and says at what it failed, why, and what it wrote last", async () => {
    const { servers } = testServers({
      exits: fixtureServer("hostile.mjs", ["exits-at-start"]),
      careful: fixtureServer("hostile.mjs", ["careful"]),
      absent: stdioSettings("/proc/nonexistent/program", []),
      talks: stdioSettings("sh", ["-c", "echo hello; read x"]),
      unlisted: fixtureServer("hostile.mjs", ["list-fails"]),
    });
    await servers.ready();
    expect(
      servers.servers.map(({ name, status, error }) => [name, status, error?.message, error?.hint]),
    ).toEqual([
      [
        "exits",
        "failed",
        'the MCP server "exits" did not start: greeting it failed (initialize): it exited with code 3\nIts last lines on stderr:\n  error: no configuration found',
        expect.stringContaining("check its command"),
      ],
      ["careful", "ready", undefined, undefined],
      [
        "absent",
        "failed",
        'the MCP server "absent" did not start: greeting it failed (initialize): it exited with code unknown (spawn /proc/nonexistent/program ENOENT)',
        expect.stringContaining("check its command"),
      ],
      [
        "talks",
        "failed",
        'the MCP server "talks" did not start: greeting it failed (initialize): it exited with code 0',
        expect.stringContaining("speak MCP"),
      ],
      [
        "unlisted",
        "failed",
        'the MCP server "unlisted" did not start: listing its tools failed (tools/list): the database is down (-32603)',
        expect.any(String),
      ],
    ]);
    expect(servers.servers[0]?.error).toMatchObject({ code: "mcp.start-failed" });
    expect(servers.tools()).toMatchObject([{ server: "careful" }]);
  });

  it("in time fails, and is ended", async () => {
    const { servers, pids } = await whileCollecting(() =>
      hostileProcess("silent", { startupTimeoutMs: 1000 }),
    );
    expect(servers.servers[0]).toMatchObject({
      status: "failed",
      error: {
        code: "mcp.start-failed",
        message:
          'the MCP server "srv" did not start: greeting it failed (initialize): it took longer than 1.0 s',
        hint: expect.stringContaining("startup_timeout_sec"),
      },
    });
    await expect.poll(() => pids().filter(isRunning)).toEqual([]);
  });

  it("fails the session if it is required", async () => {
    const { servers } = testServers({
      exits: fixtureServer("hostile.mjs", ["exits-at-start"], { required: true }),
      careful: fixtureServer("hostile.mjs", ["careful"]),
    });
    await expect(servers.ready()).rejects.toMatchObject({ code: "mcp.start-failed" });
    expect(servers.servers).toMatchObject([{ status: "failed" }, { status: "ready" }]);
  });

  it("is not tried for ever", async () => {
    const { servers, pids } = await hostileProcess("exits-at-start");
    const tries = () => servers.listResources("srv").then(String, (error: Error) => error.message);
    expect(await tries()).toContain("it exited with code 3");
    expect(await tries()).toContain("it exited with code 3");
    expect(await tries()).toMatch(
      /not started again so soon, after 3 starts in a minute: .*it exited with code 3/s,
    );
    expect(await tries()).toContain("not started again so soon");
    // Each start is tried twice, because an old server may end at the first question.
    expect(pids()).toHaveLength(6);
  });

  it("ends at once when the session ends or the wait for it is given up", async () => {
    const { servers } = testServers({ srv: fixtureServer("hostile.mjs", ["silent"]) });
    const waited = new AbortController();
    const ready = servers.ready({ signal: waited.signal });
    waited.abort(new Error("enough"));
    await expect(ready).rejects.toThrow("enough");
    expect(servers.servers[0]?.status).toBe("starting");
    await servers.close();
    expect(servers.servers[0]?.status).toBe("closed");
    await servers.ready();
  });

  it("is ended even if its launcher does not listen and answers late", async () => {
    const late: (() => void)[] = [];
    let exit: Promise<unknown> | undefined;
    const { servers } = testServers(
      { srv: fixtureServer("hostile.mjs", ["stubborn"], { startupTimeoutMs: 50 }) },
      {
        launch: async (name, command) => {
          await new Promise<void>((resolve) => late.push(resolve));
          const child = await launchChild(name, command, { signal: new AbortController().signal });
          exit = child.exited;
          return child;
        },
      },
    );
    await servers.ready();
    expect(servers.servers[0]?.error?.message).toContain("(launch): it took longer than 50 ms");
    late[0]?.();
    await servers.close();
    await expect(exit).resolves.toMatchObject({ signal: "SIGKILL" });
  });
});

describe("a call", () => {
  it("of a tool that never answers ends in time, and the server is told", async () => {
    const { servers, call } = await hostile("never-answers", { toolTimeoutMs: 300 });
    await expect(whileCollecting(() => call())).rejects.toMatchObject({
      code: "mcp.timed-out",
      message: 'the tool "run" of the MCP server "srv" took longer than 300 ms',
      hint: expect.stringContaining("tool_timeout_sec"),
    });
    const seen = await servers.call(toolOf(servers, "seen"), {});
    expect(JSON.stringify(seen.content)).toContain("notifications/cancelled");
  });

  it("that is cancelled rejects at once with the reason, and the server is told", async () => {
    const { servers, call } = await hostile("never-answers");
    const cancel = new AbortController();
    const waiting = call({}, { signal: cancel.signal });
    await expect
      .poll(async () => JSON.stringify((await servers.call(toolOf(servers, "seen"), {})).content))
      .toContain("tools/call");
    const reason = new Error("the user pressed escape");
    cancel.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect
      .poll(async () => JSON.stringify((await servers.call(toolOf(servers, "seen"), {})).content))
      .toContain("notifications/cancelled");
    await expect(call({}, { signal: cancel.signal })).rejects.toBe(reason);
  });

  it("waits for its answer although its tool has vanished", async () => {
    const { servers, call } = await hostile("changes-in-call");
    let changes = 0;
    const stop = servers.onToolsChanged(() => {
      changes += 1;
    });
    const answer = await call();
    expect(answer).toEqual(text("the answer of a tool that is gone"));
    await expect.poll(() => servers.tools().map(({ modelName }) => modelName)).toEqual(["srv__other"]);
    expect(changes).toBe(1);
    stop();
  });

  it("passes on progress", async () => {
    const { call } = await hostile("progress");
    const progress: unknown[] = [];
    await call({}, { onProgress: (one: unknown) => progress.push(one) });
    expect(progress).toEqual([1, 2, 3].map((n) => ({ progress: n, total: 3, message: `step ${n}` })));
  });

  it("that the server refuses says so, without its control sequences", async () => {
    const { call, servers } = await hostile("refuses");
    await expect(call()).rejects.toMatchObject({
      code: "mcp.failed",
      message: 'the tool "run" of the MCP server "srv" failed: no such thing (-32602)',
    });
    expect(servers.servers[0]?.status).toBe("ready");
  });

  it("for which the user has to log in first says where", async () => {
    const { call } = await hostile("wants-a-login");
    await expect(call()).rejects.toMatchObject({
      code: "mcp.failed",
      hint: "open https://example.com/login, then let the call be made again",
    });
  });

  it("rejects when the session ends, and nothing is left running", async () => {
    const { servers, call, pids } = await hostileProcess("never-answers");
    const waiting = call().catch((error: Error) => error.message);
    await expect
      .poll(async () => JSON.stringify((await servers.call(toolOf(servers, "seen"), {})).content))
      .toContain("tools/call");
    await servers.close();
    expect(await waiting).toBe('the MCP server "srv" is closed');
    expect(pids().filter(isRunning)).toEqual([]);
    await servers.close();
  });

  it("with an answer that is none fails", async () => {
    const { call } = await hostile("answers-nonsense");
    await expect(call()).rejects.toMatchObject({
      code: "mcp.failed",
      message: expect.stringContaining("content"),
    });
  });

  it("keeps parts that brig does not know, structured content and the server's own failure", async () => {
    const { call } = await hostile("pictures");
    expect(await call()).toEqual({
      content: [{ type: "unheard-of", data: 1 }],
      structuredContent: { a: [1] },
      isError: true,
    });
  });
});

describe("a server that breaks the rules", () => {
  it("with other lines between its messages is understood, with one warning", async () => {
    const { call, warnings } = await hostile("garbage");
    expect(await call()).toEqual(text("fine"));
    await call();
    expect(warnings).toEqual([
      'the MCP server "srv" writes lines to its standard output that are no messages of MCP, such as: starting up',
    ]);
  });

  it("with nothing but other lines is ended", async () => {
    const { call } = await hostileProcess("garbage-flood");
    await expect(call()).rejects.toMatchObject({ message: expect.stringContaining("it wrote 1000 lines") });
  });

  it("with several messages in a line is understood, with very many it is not", async () => {
    const { call, warnings } = await hostileProcess("batches");
    expect(await call()).toEqual(text("done"));
    expect(warnings).toHaveLength(1);
  });

  it("with bytes that are no text is understood otherwise", async () => {
    const { call } = await hostile("invalid-utf8");
    expect(await call()).toEqual(text("a��b"));
  });

  it("with a line that comes byte by byte is understood", async () => {
    const { call } = await hostile("half-lines");
    expect(await call()).toEqual(text("größer 🚀 gut"));
  });

  it("with an answer that is nested too deeply fails this call only", async () => {
    const { call, servers } = await hostile("deep");
    await expect(call()).rejects.toMatchObject({ message: expect.stringContaining("nested too deeply") });
    expect(servers.servers[0]?.status).toBe("ready");
  });

  it("with endless pages of tools is used with those that came", async () => {
    const { servers, warnings } = await hostile("cursor-loop");
    expect(servers.tools().map(({ name }) => name)).toEqual(["other", "run"]);
    expect(warnings[0]).toContain("a list of tools that does not end");
    const endless = await hostile("cursor-new");
    expect(endless.servers.tools().length).toBeGreaterThan(50);
    expect(endless.warnings).toEqual([expect.stringContaining("a list of tools that does not end")]);
  });

  it("with a huge cursor is used with the tools that came before it", async () => {
    const { servers, warnings } = await hostile("cursor-huge");
    expect(servers.tools().map(({ name }) => name)).toEqual(["run-1"]);
    expect(warnings).toEqual([expect.stringContaining("a list of tools that does not end")]);
  });

  it("with too many tools is used with a thousand", async () => {
    const { servers, warnings } = await hostile("many-tools");
    expect(servers.tools()).toHaveLength(1000);
    expect(warnings).toEqual([expect.stringContaining("more than 1000 tools")]);
  });

  it("with tools that are none is used with the others", async () => {
    const { servers, warnings } = await hostile("bad-tools");
    expect(servers.tools().map(({ name, inputSchema }) => [name, inputSchema])).toEqual([
      ["odd", { type: "object", properties: {} }],
      ["run", { type: "object", properties: {} }],
    ]);
    expect(warnings).toEqual([expect.stringContaining("describes 4 of its tools")]);
  });

  it("with a flood of notifications answers all the same", async () => {
    const { call } = await hostile("floods");
    expect(await call()).toEqual(text("done"));
  });

  it("with changes all the time is asked for its tools now and then", async () => {
    const { servers, call } = await hostile("changes-always");
    expect(await call()).toEqual(text("done"));
    const lists = await servers.call(toolOf(servers, "lists"), {});
    expect(Number((lists.content[0] as { text?: string } | undefined)?.text)).toBeLessThan(5);
  });

  it("that asks for a model, for directories or for something unheard of is refused", async () => {
    const { call } = await hostile("asks");
    expect(await call()).toEqual(text([-32601, -32601, -32601, {}]));
  });

  it("that does not read is ended before it takes the memory", async () => {
    const { call } = await hostileProcess("stops-reading");
    await call();
    const big = { text: "x".repeat(8 * 1024 * 1024) };
    const calls = Array.from({ length: 12 }, () => call(big).catch((error: Error) => error.message));
    expect((await Promise.all(calls)).at(-1)).toContain("it does not read its standard input");
  });
});

describe("a question of a server", () => {
  const page = { mode: "url", message: "Log in", url: "https://example.com/login", elicitationId: "1" };
  const answersOf = async (questions: unknown[], elicit?: Elicit) => {
    const { call } = await hostile("elicits");
    const result = await call({ questions }, { elicit });
    return JSON.parse((result.content[0] as unknown as { text: string }).text);
  };

  it("is passed to the user, with the fields of the form", async () => {
    const asked: unknown[] = [];
    const answers = await answersOf([form, page], async (question) => {
      asked.push(question);
      return question.kind === "form"
        ? { action: "accept", content: { name: "A", tags: ["x"] } }
        : { action: "cancel" };
    });
    expect(answers).toEqual([
      { action: "accept", content: { name: "A", tags: ["x"] } },
      { action: "cancel" },
    ]);
    const optional = { title: null, description: null, required: false };
    expect(asked).toEqual([
      {
        kind: "form",
        server: "srv",
        message: "Who are you?",
        fields: [
          {
            ...optional,
            name: "name",
            title: "Name",
            required: true,
            value: { type: "string", minLength: 1, maxLength: null, format: null, default: null },
          },
          { ...optional, name: "age", value: { type: "integer", minimum: 0, maximum: null, default: null } },
          { ...optional, name: "isSure", value: { type: "boolean", default: true } },
          {
            ...optional,
            name: "colour",
            value: {
              type: "choice",
              choices: [
                { value: "r", title: "red" },
                { value: "g", title: "green" },
              ],
              default: null,
            },
          },
          {
            ...optional,
            name: "size",
            value: { type: "choice", choices: [{ value: "s", title: "small" }], default: null },
          },
          {
            ...optional,
            name: "tags",
            value: {
              type: "choices",
              choices: [
                { value: "x", title: "x" },
                { value: "y", title: "y" },
              ],
              minItems: null,
              maxItems: 1,
              default: [],
            },
          },
        ],
      },
      { kind: "url", server: "srv", message: "Log in", url: "https://example.com/login" },
    ]);
  });

  it("is declined when nobody can answer, and when it is none that can be asked", async () => {
    expect(await answersOf([form, page])).toEqual([{ action: "decline" }, { action: "decline" }]);
    const never: Elicit = async () => {
      throw new Error("must not be asked");
    };
    const script = { ...page, url: "javascript:alert(1)" };
    expect(await answersOf([script], never)).toEqual([{ action: "decline" }]);
  });

  it("is cancelled if the answer fails", async () => {
    const failing: Elicit = async () => {
      throw new Error("the terminal is gone");
    };
    expect(await answersOf([form], failing)).toEqual([{ action: "cancel" }]);
  });

  it("ends with its call", async () => {
    const { call } = await hostile("elicits");
    const cancel = new AbortController();
    let asked: AbortSignal | undefined;
    const never: Elicit = (_, { signal }) => {
      asked = signal;
      return new Promise(() => undefined);
    };
    const result = call({ questions: [form] }, { elicit: never, signal: cancel.signal });
    await expect.poll(() => asked).toBeDefined();
    cancel.abort(new Error("enough"));
    await expect(result).rejects.toThrow("enough");
    expect(asked?.aborted).toBe(true);
  });
});

/** These wait for as long as brig gives a server to answer or to end, and do so together. */
describe.concurrent("a server that takes its time", () => {
  it("that ignores what it does not know is taken for an older one", async ({
    expect,
    onTestFinished: finish,
  }) => {
    const { call, starts } = await hostile("ignores-unknown", { startupTimeoutMs: 6000, finish });
    expect(await call({ a: 1 })).toEqual(text({ a: 1 }));
    expect(starts()).toBe(1);
  });

  it("that does not listen is ended when the session ends, with everything that it left running", async ({
    expect,
    onTestFinished: finish,
  }) => {
    const { servers, pids } = await hostileProcess("stubborn", { finish });
    expect(isRunning(pids()[0])).toBe(true);
    await servers.close();
    expect(isRunning(pids()[0])).toBe(false);
    expect(servers.servers[0]?.status).toBe("closed");
    await expect(servers.listResources("srv")).rejects.toMatchObject({
      code: "mcp.failed",
      message: 'the MCP server "srv" is closed',
    });
  });

  it.for<[string, RegExp]>([
    [
      "exits-in-call",
      /ended during the tool "run": it exited with code 7\nIts last lines on stderr:\n {2}no space left on device$/,
    ],
    ["killed-in-call", /ended during the tool "run": it was ended by SIGKILL/],
    ["closes-output", /ended during the tool "run": it closed its standard output/],
  ])(
    "that ends during a call fails it, and is not sent it again: %s",
    async ([mode, message], { expect, onTestFinished: finish }) => {
      const { call, servers, pids } = await hostileProcess(mode, { finish });
      await expect(call()).rejects.toMatchObject({
        code: "mcp.failed",
        message: expect.stringMatching(message),
        hint: expect.stringContaining("may have been carried out"),
      });
      expect(pids()).toHaveLength(1);
      expect(servers.servers[0]?.status).toBe("failed");
      await expect.poll(() => pids().filter(isRunning)).toEqual([]);
      expect(await servers.listResources("srv")).toMatchObject({ resources: [{ name: "a" }] });
      expect(pids()).toHaveLength(2);
    },
  );

  it("gets no longer for a call by reporting progress", async ({ expect, onTestFinished: finish }) => {
    const { call } = await hostile("progress-for-ever", { toolTimeoutMs: 500, finish });
    await expect(call({}, { onProgress: () => undefined })).rejects.toMatchObject({ code: "mcp.timed-out" });
  });

  it.for(["huge-line", "endless-line"])(
    "with a message that is too long is ended, and takes no memory: %s",
    async (mode, { expect, onTestFinished: finish }) => {
      const { call, pids } = await hostileProcess(mode, { finish });
      const held = await heldDuring(async () => {
        await expect(call()).rejects.toMatchObject({
          code: "mcp.failed",
          message: 'the MCP server "srv" ended during the tool "run": it sent a message of more than 16 MiB',
        });
      });
      expect(held).toBeLessThan(64 * 1024 * 1024);
      await expect.poll(() => pids().filter(isRunning)).toEqual([]);
    },
  );

  it("that closes its input is ended", async ({ expect, onTestFinished: finish }) => {
    const { call } = await hostileProcess("closes-input", { finish });
    const first = call().catch((error: Error) => error.message);
    const messages = async () => {
      const again = call({ text: "x".repeat(1024 * 1024) }).catch((error: Error) => error.message);
      return await Promise.race([first, again]);
    };
    expect(await messages()).toContain("it closed its standard input");
  });

  it("stops the time of a call by asking, and a flood of its questions is declined", async ({
    expect,
    onTestFinished: finish,
  }) => {
    const { call } = await hostile("elicits", { toolTimeoutMs: 2000, finish });
    let resolve: () => void = () => undefined;
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    let open = 0;
    const slow: Elicit = async () => {
      open += 1;
      await promise;
      return { action: "accept", content: {} };
    };
    const result = call({ questions: Array.from({ length: 30 }, () => form) }, { elicit: slow });
    await expect.poll(() => open).toBe(8);
    setTimeout(resolve, 3000);
    const answers: { action: string }[] = JSON.parse(
      ((await result).content[0] as unknown as { text: string }).text,
    );
    expect(answers.filter(({ action }) => action === "accept")).toHaveLength(8);
    expect(answers.filter(({ action }) => action === "decline")).toHaveLength(22);
  });
});

it("the names of the tools of all servers are different", async () => {
  const { servers } = testServers({
    "a b": fixtureServer("hostile.mjs", ["careful"]),
    "a.b": fixtureServer("hostile.mjs", ["careful"]),
  });
  await servers.ready();
  const names = servers.tools().map(({ modelName }) => modelName);
  expect(names).toHaveLength(2);
  expect(new Set(names).size).toBe(2);
});

it("the SDK is loaded only when a server is opened, because loading it takes long", () => {
  const folder = fileURLToPath(new URL("../../../../../src/agent/mcp/client", import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".ts"),
  );
  const imports = files.flatMap((path) =>
    [...readFileSync(join(folder, path), "utf8").matchAll(/^import .*"@modelcontextprotocol.*$/gm)].map(
      String,
    ),
  );
  expect(imports).not.toEqual([]);
  expect(imports.filter((line) => !line.startsWith("import type "))).toEqual([]);
});
