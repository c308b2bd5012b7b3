import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { containersOf } from "../support/cli.js";
import { mcpServerStart, startMcpServer, type WireMessage } from "../support/mcp-server-process.js";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  type Reply,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { testProgram } from "../support/test-program.js";

const exec = (id: string, cmd: string, more: object = {}) =>
  respond(callDone(id, "exec_command", { cmd, login: false, shell: "/bin/bash", ...more }));
const escalated = (id: string, cmd: string) =>
  exec(id, cmd, { sandbox_permissions: "require_escalated", justification: "May I?" });
const says = (text: string) => respond(messageDone(text));
const lasting = (id: string, marker: string) =>
  exec(id, `exec -a ${marker} sleep 600`, { yield_time_ms: 30_000 });

async function start(
  replies: readonly Reply[] | ((request: ReceivedRequest) => Reply),
  options: { args?: string[]; env?: Record<string, string>; isProcess?: boolean } = {},
) {
  const directory = await temporaryDirectory();
  const server = await startMcpServer("brig", { directory: directory.path, replies, ...options });
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
  return server;
}

/** The outputs of calls that the model has read last. */
function outputs({ endpoint }: { endpoint: { requests: ReceivedRequest[] } }): string[] {
  const items = endpoint.requests.at(-1)?.body.input ?? [];
  return items.flatMap(({ output }) => (typeof output === "string" ? [output] : []));
}

const threadOf = ({ result }: WireMessage) => result?.structuredContent?.threadId ?? "";
const textOf = ({ result }: WireMessage) => result?.content?.[0]?.text;

interface ToolResult {
  isError?: boolean;
  structuredContent?: { threadId: string; content: string };
}

/** The methods of a client that these tests use; both SDKs have them. */
interface SdkClient {
  callTool(params: { name: string; arguments: object }): Promise<unknown>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  close(): Promise<void>;
}

type Answer = { action: string; content?: Record<string, string> };
type OpenSdkClient = (
  server: Awaited<ReturnType<typeof mcpServerStart>>,
  /** Null for a client that cannot ask anybody. */
  answer: ((params: Record<string, unknown>) => Answer) | null,
) => Promise<SdkClient>;

const about = { name: "test", version: "1" };

const openV2: OpenSdkClient = async (server, answer) => {
  const client = new Client(about, { capabilities: answer === null ? {} : { elicitation: { form: {} } } });
  if (answer !== null)
    client.setRequestHandler("elicitation/create", ({ params }) => answer(params as never) as never);
  await client.connect(new StdioClientTransport({ ...server, stderr: "inherit" }));
  return client as never;
};

const openModern: OpenSdkClient = async (server, answer) => {
  const client = new Client(about, {
    capabilities: answer === null ? {} : { elicitation: { form: {} } },
    versionNegotiation: { mode: { pin: "2026-07-28" } },
  });
  if (answer !== null)
    client.setRequestHandler("elicitation/create", ({ params }) => answer(params as never) as never);
  await client.connect(new StdioClientTransport({ ...server, stderr: "inherit" }));
  return client as never;
};

/** It brings version 1 of the SDK. */
const everything = await testProgram("server-everything");
const v1 = join(everything.folder, "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm");

const openV1: OpenSdkClient = async (server, answer) => {
  const [{ Client: V1Client }, { StdioClientTransport: V1Transport }, { ElicitRequestSchema }] =
    await Promise.all([
      import(join(v1, "client", "index.js")),
      import(join(v1, "client", "stdio.js")),
      import(join(v1, "types.js")),
    ]);
  const client = new V1Client(about, { capabilities: answer === null ? {} : { elicitation: {} } });
  if (answer !== null)
    client.setRequestHandler(ElicitRequestSchema, ({ params }: { params: Record<string, unknown> }) =>
      answer(params),
    );
  await client.connect(new V1Transport({ ...server, stderr: "inherit" }));
  return client;
};

const clients: [string, OpenSdkClient, string | null][] = [
  ["the official SDK, as a client of 2025", openV2, null],
  ["the official SDK, as a client of 2026-07-28", openModern, null],
  ["version 1 of the official SDK", openV1, everything.missing],
];

describe.for(clients)("with %s", ([, open, missing]) => {
  beforeEach(({ skip }) => skip(missing !== null, missing ?? ""));

  const connect = async (
    replies: readonly Reply[],
    answer: ((params: Record<string, unknown>) => Answer) | null,
  ) => {
    const directory = await temporaryDirectory();
    const endpoint = await startResponsesServer(replies);
    const server = await mcpServerStart("brig", { directory: directory.path, url: endpoint.url });
    const client = await open(server, answer);
    onTestFinished(async () => {
      await client.close();
      await endpoint[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    });
    const call = async (name: string, args: object) =>
      (await client.callTool({ name, arguments: args })) as ToolResult;
    return { client, endpoint, call, workspace: server.cwd };
  };

  it("takes a turn, and goes on with each name of the session", async () => {
    const { client, call, endpoint } = await connect(
      [exec("c1", "echo hi"), says("One."), says("Two."), says("Three."), says("Four.")],
      null,
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["codex", "codex-reply"]);
    const { structuredContent: first } = await call("codex", { prompt: "begin" });
    expect(first).toMatchObject({ content: "One." });
    for (const [key, content] of Object.entries({
      threadId: "Two.",
      conversationId: "Three.",
      sessionId: "Four.",
    }))
      expect(await call("codex-reply", { prompt: "go on", [key]: first?.threadId })).toMatchObject({
        structuredContent: { threadId: first?.threadId, content },
      });
    expect(outputs({ endpoint })).toEqual([expect.stringContaining("hi\n")]);
  });

  // All in one session, for whose mode an approval holds only once.
  it("asks for approval each time, and the user may give it, deny it or decide nothing", async () => {
    const given: [Answer, boolean][] = [
      [{ action: "accept", content: { decision: "approved" } }, true],
      [{ action: "accept", content: { decision: "denied" } }, false],
      [{ action: "accept", content: {} }, false],
      [{ action: "decline" }, false],
      [{ action: "cancel" }, false],
    ];
    const questions: Record<string, unknown>[] = [];
    const { call, workspace, endpoint } = await connect(
      given.flatMap((_, n) => [escalated(`c${n}`, "touch made"), says("Done.")]),
      (params) => given[questions.push(params) - 1]?.[0] ?? { action: "cancel" },
    );
    let thread: { threadId?: string } = {};
    for (const [n, [answer, isApproved]] of given.entries()) {
      const result = await (n === 0
        ? call("codex", { prompt: "go", sandbox: "read-only" })
        : call("codex-reply", { prompt: "go on", ...thread }));
      expect(result, JSON.stringify(answer)).toMatchObject({ structuredContent: { content: "Done." } });
      thread = { threadId: result.structuredContent?.threadId ?? "" };
      expect(questions.slice(n)).toEqual([
        expect.objectContaining({
          message: expect.stringContaining("outside the sandbox"),
          requestedSchema: expect.objectContaining({ required: ["decision"] }),
        }),
      ]);
      expect((await readdir(workspace)).includes("made"), JSON.stringify(answer)).toBe(isApproved);
      await rm(join(workspace, "made"), { force: true });
      if (!isApproved) expect(outputs({ endpoint }).at(-1)).toMatch(/rejected|denied/i);
    }
  });

  it("denies what it cannot ask about, and the model reads why", async () => {
    const { call, workspace, endpoint } = await connect([escalated("c1", "touch made"), says("Done.")], null);
    expect(await call("codex", { prompt: "go" })).toMatchObject({ structuredContent: { content: "Done." } });
    expect(await readdir(workspace)).not.toContain("made");
    expect(outputs({ endpoint })).toEqual([expect.stringMatching(/nobody/i)]);
  });

  it("passes on the model's questions to the user", async () => {
    const options = [
      { label: "A", description: "the first" },
      { label: "B", description: "the second" },
    ];
    const questions = [{ id: "which", header: "Which", question: "Which one?", options }];
    const { call, endpoint } = await connect(
      [respond(callDone("c1", "request_user_input", { questions })), says("Done.")],
      () => ({ action: "accept", content: { which: "B" } }),
    );
    await call("codex", { prompt: "go" });
    expect(outputs({ endpoint })).toEqual([JSON.stringify({ answers: { which: { answers: ["B"] } } })]);
  });
});

describe("over HTTP", () => {
  it.each([
    ["2025", undefined],
    ["2026-07-28", { mode: { pin: "2026-07-28" } }],
  ])("serves a client of %s, its approvals and its next turn", async (_, versionNegotiation) => {
    const directory = await temporaryDirectory();
    const endpoint = await startResponsesServer([escalated("c1", "touch made"), says("One."), says("Two.")]);
    const start = await mcpServerStart("brig", {
      directory: directory.path,
      url: endpoint.url,
      args: ["--listen", "http://127.0.0.1:0"],
    });
    const server = execa(start.command, start.args, { ...start, reject: false });
    onTestFinished(async () => {
      server.kill("SIGTERM");
      await server;
      await endpoint[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    });
    let printed = "";
    server.stdout.on("data", (data: Buffer) => {
      printed += data.toString();
    });
    await expect.poll(() => printed).toMatch(/token = ".*"\n/);
    const [, url = ""] = /url = "(.*)"/.exec(printed) ?? [];
    const [, token = ""] = /token = "(.*)"/.exec(printed) ?? [];
    const client = new Client(about, {
      capabilities: { elicitation: { form: {} } },
      ...(versionNegotiation === undefined ? {} : { versionNegotiation }),
    });
    client.setRequestHandler("elicitation/create", () => ({
      action: "accept",
      content: { decision: "approved" },
    }));
    const headers = { authorization: `Bearer ${token}` };
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    const first = (await client.callTool({ name: "codex", arguments: { prompt: "go" } })) as ToolResult;
    expect(first).toMatchObject({ structuredContent: { content: "One." } });
    expect(await readdir(start.cwd)).toContain("made");
    const args = { prompt: "on", threadId: first.structuredContent?.threadId };
    expect(await client.callTool({ name: "codex-reply", arguments: args })).toMatchObject({
      structuredContent: { threadId: args.threadId, content: "Two." },
    });
    expect(await containersOf(server.pid)).not.toEqual([]);
    await client.close();
    server.kill("SIGTERM");
    await server;
    expect(await containersOf(server.pid)).toEqual([]);
  });
});

describe("brig mcp-server", () => {
  it.each([
    [{ decision: "approved" }, true],
    [{ decision: "approved_for_session" }, true],
    [
      {
        decision: {
          approved_execpolicy_amendment: { proposed_execpolicy_amendment: ["touch", "made"] },
        },
      },
      true,
    ],
    [{ decision: "denied" }, false],
    [{ decision: "anything" }, false],
    [{ decision: { approved: true } }, false],
    [{ action: "accept", content: { decision: "yes" } }, false],
    [{}, false],
  ])("takes Codex's form of an answer too: %j", async (result, isApproved) => {
    const { client, workspace } = await start([escalated("c1", "touch made"), says("Done.")]);
    await client.initialize();
    const { answer } = client.call("codex", { prompt: "go" });
    await client.answerQuestion({ result });
    expect(textOf(await answer)).toBe("Done.");
    expect((await readdir(workspace)).includes("made")).toBe(isApproved);
  });

  it("denies if the client answers with an error, and ends the turn if the user says so", async () => {
    const { client } = await start([escalated("c1", "true"), says("Done."), escalated("c2", "true")]);
    await client.initialize();
    const first = client.call("codex", { prompt: "go" });
    await client.answerQuestion({ error: { code: -32_601, message: "no such method" } });
    const threadId = threadOf(await first.answer);
    expect(textOf(await first.answer)).toBe("Done.");
    const second = client.call("codex-reply", { prompt: "on", threadId });
    const question = await client.message(
      ({ method, params }) => method === "elicitation/create" && params?.codex_call_id === "c2",
    );
    client.send({ id: question.id, result: { decision: "abort" } });
    expect((await second.answer).result).toMatchObject({
      isError: true,
      structuredContent: { threadId, content: "The turn was interrupted." },
    });
  });

  it("ends what a cancelled call runs, or waits for, and the session goes on", async () => {
    const marker = `cancelled-${randomUUID()}`;
    const { client } = await start([lasting("c1", marker), escalated("c2", "true"), says("On.")]);
    await client.initialize();
    const call = client.call("codex", { prompt: "go" });
    const { params } = await client.event("exec_command_begin");
    const threadId = params?._meta?.threadId;
    client.send({ method: "notifications/cancelled", params: { requestId: call.id } });
    await client.event("turn_aborted");
    await expect.poll(() => runs(marker)).toBe(false);
    const asking = client.call("codex-reply", { prompt: "ask", threadId });
    await client.message(({ method }) => method === "elicitation/create");
    client.send({ method: "notifications/cancelled", params: { requestId: asking.id } });
    await client.event("turn_aborted", 2);
    expect(textOf(await client.call("codex-reply", { prompt: "on", threadId }).answer)).toBe("On.");
    expect(client.messages.filter(({ id, method }) => id === call.id && method === undefined)).toEqual([]);
  });

  it("ends everything when its input ends in the middle of a call", async () => {
    const { client } = await start([lasting("c1", "disconnected-one")], { isProcess: true });
    await client.initialize();
    client.call("codex", { prompt: "go" });
    await client.event("exec_command_begin");
    expect(await containersOf(client.pid)).toHaveLength(1);
    client.endInput();
    expect(await client.exited).toEqual({ exitCode: 0, signal: null });
    expect(await containersOf(client.pid)).toEqual([]);
  });

  it("ends everything when nobody reads its output any more", async () => {
    const { client } = await start([lasting("c1", "unread-one")], { isProcess: true });
    await client.initialize();
    const call = client.call("codex", { prompt: "go" });
    await client.event("exec_command_begin");
    client.stdout.destroy();
    // The next message shows it.
    client.send({ method: "notifications/cancelled", params: { requestId: call.id } });
    await client.exited;
    expect(await containersOf(client.pid)).toEqual([]);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("leaves nothing behind on %s", async (signal) => {
    const { client } = await start([lasting("c1", "signalled-one")], { isProcess: true });
    await client.initialize();
    client.call("codex", { prompt: "go" });
    await client.event("exec_command_begin");
    client.kill(signal);
    expect((await client.exited).exitCode).toBeGreaterThan(128);
    expect(await containersOf(client.pid)).toEqual([]);
  });

  it("runs sessions side by side, each in its own directory and mode", async () => {
    const meeting = "touch here; pwd; while [ ! -e both ]; do sleep 0.05; done; touch /etc/x";
    const { client, workspace, endpoint } = await start(({ body }) => {
      const isAnswered = body.input.some(({ type }) => type === "function_call_output");
      return isAnswered ? says("Met.") : exec("c1", meeting, { yield_time_ms: 30_000 });
    });
    const directories = ["a", "b"].map((name) => join(workspace, name));
    for (const directory of directories) await mkdir(directory);
    await client.initialize();
    const calls = [
      client.call("codex", { prompt: "go", cwd: "a", sandbox: "workspace-write" }),
      client.call("codex", { prompt: "go", cwd: directories[1], sandbox: "danger-full-access" }),
    ];
    await client.event("exec_command_begin", 2);
    for (const directory of directories) await writeFile(join(directory, "both"), "");
    const answers = await Promise.all(calls.map(({ answer }) => answer));
    expect(answers.map(textOf)).toEqual(["Met.", "Met."]);
    expect(new Set(answers.map(threadOf)).size).toBe(2);
    for (const directory of directories) expect(await readdir(directory)).toContain("here");
    const read = endpoint.requests.flatMap(({ body }) => body.input).map(({ output }) => String(output));
    const ofDirectory = (directory = "") => read.filter((output) => output.includes(directory)).join();
    expect(ofDirectory(directories[0])).toContain("Read-only file system");
    expect(ofDirectory(directories[1])).not.toContain("Read-only file system");
  });

  it("lets calls of one session wait for each other", async () => {
    const { client, endpoint } = await start([
      exec("c1", "sleep 1"),
      says("One."),
      says("Two."),
      says("Three."),
    ]);
    await client.initialize();
    const first = client.call("codex", { prompt: "first" });
    const { params } = await client.event("task_started");
    const threadId = params?._meta?.threadId;
    const others = ["second", "third"].map((prompt) => client.call("codex-reply", { prompt, threadId }));
    const texts = await Promise.all([first, ...others].map(async ({ answer }) => textOf(await answer)));
    expect(texts).toEqual(["One.", "Two.", "Three."]);
    const said = endpoint.requests.at(-1)?.body.input.filter(({ role }) => role === "user") ?? [];
    expect(JSON.stringify(said)).toMatch(/first.*second.*third/);
  });

  it("continues a session of another process, in its directory and mode", async () => {
    const { client, workspace } = await start([says("One.")], { isProcess: true });
    await mkdir(join(workspace, "sub"));
    await client.initialize();
    const threadId = threadOf(
      await client.call("codex", { prompt: "begin", cwd: "sub", sandbox: "read-only" }).answer,
    );
    client.endInput();
    await client.exited;
    const directory = join(workspace, "..");
    await using other = await startMcpServer("brig", {
      directory,
      replies: [exec("c1", "pwd; touch x"), says("Two.")],
    });
    await other.client.initialize({});
    const answer = await other.client.call("codex-reply", { prompt: "go on", threadId }).answer;
    expect(answer.result).toMatchObject({ structuredContent: { threadId, content: "Two." } });
    expect(outputs(other)[0]).toMatch(new RegExp(`${join(workspace, "sub")}[^]*Read-only file system`));
    const said = JSON.stringify(other.endpoint.requests[0]?.body.input);
    expect(said).toMatch(/begin.*One\..*go on/);
    expect(other.client.events("session_configured")).toHaveLength(1);
  });

  it("gives an idle session's container back, and opens another one for its next call", async () => {
    const { client } = await start(
      [exec("c1", "true"), says("One."), exec("c2", "echo again"), says("Two.")],
      {
        args: ["--idle-minutes", "0.005"],
      },
    );
    await client.initialize();
    const threadId = threadOf(await client.call("codex", { prompt: "go" }).answer);
    await expect.poll(() => containersOf(client.pid)).toEqual([]);
    const answer = await client.call("codex-reply", { prompt: "on", threadId }).answer;
    expect(textOf(answer)).toBe("Two.");
  });

  it("tells of progress to a client that asks for it", async () => {
    const { client } = await start([exec("c1", "echo hi"), says("Done.")]);
    await client.initialize();
    await client.call("codex", { prompt: "go" }, { progressToken: "token" }).answer;
    const told = client.messages.filter(({ method }) => method === "notifications/progress");
    expect(told.map(({ params }) => params?.message)).toEqual([
      "the turn has begun",
      "runs echo hi",
      "Done.",
    ]);
    expect(told.map(({ params }) => params?.progress)).toEqual([1, 2, 3]);
  });

  it("uses its options and the settings of a call", async () => {
    const { client, endpoint } = await start([says("One."), says("Two.")], {
      args: ["-m", "model-of-the-server", "-c", 'developer_instructions="of the server"', "-s", "read-only"],
    });
    await client.initialize();
    await client.call("codex", { prompt: "go" }).answer;
    const settings = {
      model: "model-of-the-call",
      "base-instructions": "base of the call",
      "developer-instructions": 'of "the\ncall"',
      include_plan_tool: false,
      config: { model_reasoning_effort: "high", "tools.view_image": false },
    };
    await client.call("codex", { prompt: "go", ...settings }).answer;
    const [first, second] = endpoint.requests.map(({ body }) => body);
    expect(first?.model).toBe("model-of-the-server");
    expect(JSON.stringify(first?.input)).toMatch(/of the server.*read-only|read-only.*of the server/);
    expect(second).toMatchObject({ model: "model-of-the-call", instructions: "base of the call" });
    expect(JSON.stringify(second?.input)).toContain(JSON.stringify('of "the\ncall"').slice(1, -1));
    const tools = (second?.tools ?? []) as { name?: string }[];
    const names = tools.map(({ name }) => name);
    expect(names).not.toContain("update_plan");
    expect(names).not.toContain("view_image");
  });

  describe("bad input", () => {
    it.each([
      ["a directory that there is not", { cwd: "missing" }, /missing" does not exist\ncreate it/],
      ["a profile that there is not", { profile: "none" }, /no profile `none`/],
      ["a setting without a value", { config: { model: null } }, /"model" has no value\nleave it out/],
      ["a key that is none", { config: { "a b": 1 } }, /"a b" is not a key/],
      ["a key with a value of its own", { config: { 'model="a"\nsandbox_mode': "b" } }, /is not a key/],
      [
        "a server on this machine",
        { config: { "mcp_servers.x": { command: "touch", sandbox: "host" } } },
        /mcp_servers\.x\.command is not for a call to decide.*\nleave it out.*brig mcp-server -c/,
      ],
      ["a value that is none", { config: { sandbox_mode: "bogus" } }, /sandbox_mode/],
      ["the same setting twice", { "include-plan-tool": true, include_plan_tool: true }, /is given twice/],
    ])("says what is wrong with %s", async (_, args, words) => {
      const { client } = await start([]);
      await client.initialize();
      const { result } = await client.call("codex", { prompt: "go", ...args }).answer;
      expect(result).toMatchObject({ isError: true });
      expect(result?.content?.[0]?.text).toMatch(words);
    });

    it("says what is wrong where there is no engine or no image, and goes on", async () => {
      const { client } = await start([says("One.")], { env: { DOCKER_HOST: "unix:///proc/nonexistent" } });
      await client.initialize();
      for (const _ of [1, 2])
        expect((await client.call("codex", { prompt: "go" }).answer).result).toMatchObject({
          isError: true,
          content: [{ text: expect.stringContaining("/proc/nonexistent") }],
        });
      const other = await start([says("One.")], { args: ["--container-image", "brig/no-such-image"] });
      await other.client.initialize();
      expect((await other.client.call("codex", { prompt: "go" }).answer).result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("brig/no-such-image") }],
      });
    });

    it("says what is wrong with the model's endpoint and without a login", async () => {
      const refused: Reply = { kind: "status", status: 401, body: { error: { message: "who are you?" } } };
      const { client, endpoint } = await start([refused], { env: { OPENAI_API_KEY: "" } });
      await client.initialize();
      expect(textOf(await client.call("codex", { prompt: "go" }).answer)).toContain("who are you?");
      const other = await start([], {
        env: { OPENAI_API_KEY: "" },
        args: ["-c", `openai_base_url="${endpoint.url}"`],
      });
      await other.client.initialize();
      const config = { model_provider: "openai" };
      const { result } = await other.client.call("codex", { prompt: "go", config }).answer;
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("brig login") }],
      });
    });

    it("survives garbage, unknown ids and methods, and a flood of calls", async () => {
      const { client } = await start(() => says("Still here."), { isProcess: true });
      client.send("garbage");
      client.send("[".repeat(100_000));
      client.send({ id: { not: "an id" }, method: "tools/call" });
      await client.initialize();
      client.send({ method: "notifications/cancelled", params: { requestId: 12_345 } });
      client.send({ method: "notifications/cancelled", params: {} });
      client.send({ id: 99_999, result: { decision: "approved" } });
      client.send({ method: "notifications/unknown" });
      expect((await client.request("unknown/method", {})).error?.code).toBe(-32_601);
      expect((await client.request("tools/call", { name: 3 })).error?.code).toBe(-32_602);
      const flood = Array.from({ length: 2000 }, () => client.call("codex", {}).answer);
      for (const { result, error } of await Promise.all(flood))
        expect(error?.code === -32_600 || result?.isError === true).toBe(true);
      expect(textOf(await client.call("codex", { prompt: "go" }).answer)).toBe("Still here.");
    });

    it("refuses a session more than it can have at once, and more calls than one session takes", async () => {
      const { client } = await start([lasting("c1", "crowded-one")]);
      await client.initialize();
      const call = client.call("codex", { prompt: "go" });
      const { params } = await client.event("exec_command_begin");
      const threadId = params?._meta?.threadId;
      const waiting = Array.from({ length: 15 }, () =>
        client.call("codex-reply", { prompt: "on", threadId }),
      );
      const { result } = await client.call("codex-reply", { prompt: "on", threadId }).answer;
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("16 calls") }],
      });
      for (const { id } of [...waiting, call])
        client.send({ method: "notifications/cancelled", params: { requestId: id } });
      await client.event("turn_aborted");
    });

    it("ends with a message that is too long, and leaves nothing behind", async () => {
      const { client } = await start([lasting("c1", "flooded-one")], { isProcess: true });
      await client.initialize();
      client.call("codex", { prompt: "go" });
      await client.event("exec_command_begin");
      client.send("x".repeat(100 * 1024 * 1024));
      await client.exited;
      expect(
        client.messages.at(-1)?.error ?? client.messages.map(({ error }) => error).find(Boolean),
      ).toMatchObject({
        message: expect.stringContaining("bytes"),
      });
      expect(await containersOf(client.pid)).toEqual([]);
    });
  });
});

/** Whether a process with this name runs on this machine, in whatever container. */
function runs(marker: string): boolean {
  return readdirSync("/proc").some((name) => {
    try {
      return /^[0-9]+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").startsWith(`${marker}\0`);
    } catch {
      return false;
    }
  });
}
