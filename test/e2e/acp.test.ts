import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SetSessionConfigOptionResponse } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AcpClient, type AcpClientOptions } from "../support/acp-client.js";
import { containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { callDone, completed, respond, startResponsesServer, turn } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";

const plainServer = fileURLToPath(new URL("../fixtures/plain-mcp-server.mjs", import.meta.url));

let folder: string;
let work: string;
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  work = join(folder, "work");
  home = join(folder, "home");
  await mkdir(work);
});

async function script(yaml: string): Promise<string[]> {
  const file = join(folder, "script.yaml");
  await writeFile(file, yaml);
  return ["--script", file];
}

async function start(options: Partial<AcpClientOptions> = {}): Promise<AcpClient> {
  const client = await AcpClient.start({ cwd: folder, home, ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return client;
}

async function scripted(yaml: string, { args = [], ...options }: Partial<AcpClientOptions> = {}) {
  return await start({ ...options, args: [...(await script(yaml)), ...args] });
}

/** Without the empty directories that keep protected names from being made while a sandbox is open. */
async function files(): Promise<string[]> {
  return (await readdir(work)).filter((name) => !name.startsWith("."));
}

/** The command prints a text that it does not itself contain, so that a test can wait until it runs. */
const sleeps = `
steps:
  - calls: [{ exec_command: { cmd: "printf 'fell %s\\\\n' asleep; sleep 600 & sleep 600", yield_time_ms: 300000 } }]
  - text: never
`;

describe("a conversation", () => {
  it("has turns with messages, commands, a plan and diffs, and a title", async () => {
    await writeFile(join(work, "a.txt"), "one\ntwo\n");
    const client = await scripted(`
steps:
  - text: I look.
    calls:
      - update_plan: { plan: [{ step: look, status: in_progress }] }
      - exec_command: { cmd: "cat a.txt; exit 3" }
  - calls:
      - apply_patch: |
          *** Begin Patch
          *** Update File: a.txt
          @@
          -one
          +eins
          *** Add File: b.txt
          +new
          *** End Patch
  - text: Done.
  - text: Again.
`);
    const session = await client.open(work);
    expect(await client.prompt(session, "change it\nplease")).toBe("end_turn");
    expect(client.text()).toBe("I look.Done.");
    expect(client.of("session_info_update")).toMatchObject([{ title: "change it please" }]);
    expect(client.of("plan")).toMatchObject([{ entries: [{ content: "look", status: "in_progress" }] }]);
    const [command, patch] = client.of("tool_call");
    expect(command).toMatchObject({ kind: "execute", title: "cat a.txt; exit 3" });
    expect(patch).toMatchObject({
      kind: "edit",
      locations: [{ path: `${work}/a.txt` }, { path: `${work}/b.txt` }],
    });
    const last = (id: string | undefined) =>
      client.of("tool_call_update").findLast(({ toolCallId }) => toolCallId === id);
    expect(last(command?.toolCallId)).toMatchObject({
      status: "failed",
      rawOutput: { exit_code: 3 },
      content: [{ content: { text: "```\none\ntwo\n```" } }],
    });
    expect(last(patch?.toolCallId)).toMatchObject({
      status: "completed",
      content: [
        { type: "diff", path: `${work}/a.txt`, oldText: "one\ntwo\n", newText: "eins\ntwo\n" },
        { type: "diff", path: `${work}/b.txt`, newText: "new\n" },
      ],
    });
    expect(await client.prompt(session, "again")).toBe("end_turn");
    expect(client.text()).toBe("I look.Done.Again.");
    expect(await readFile(join(work, "a.txt"), "utf8")).toBe("eins\ntwo\n");
  });

  it("shows the output of a long command while it runs, in a terminal if the client draws one", async () => {
    const client = await scripted(
      `
steps:
  - calls: [{ exec_command: { cmd: "echo first; until test -e go; do sleep 0.05; done; echo last" } }]
  - text: Done.
`,
      { capabilities: { _meta: { terminal_output: true } } },
    );
    const session = await client.open(work);
    const prompt = client.prompt(session, "go");
    const shown = () =>
      client
        .of("tool_call_update")
        .map(({ _meta }) => (_meta?.terminal_output as { data: string } | undefined)?.data ?? "")
        .join("");
    await client.until(() => shown() === "first\n");
    await writeFile(join(work, "go"), "");
    expect(await prompt).toBe("end_turn");
    expect(shown()).toBe("first\nlast\n");
  });

  it("takes pictures, links and attached texts", async () => {
    await using endpoint = await startResponsesServer([turn({ text: "seen", reasoning: "hm" })]);
    const client = await start({ env: { OPENAI_API_KEY: "sk-x", OPENAI_BASE_URL: endpoint.url } });
    const session = await client.open(work);
    const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await client.prompt(session, [
      { type: "text", text: "compare " },
      { type: "resource_link", name: "a b.ts", uri: `file://${work}/a%20b.ts` },
      { type: "resource", resource: { uri: `file://${work}/c.ts`, text: "unsaved" } },
      { type: "image", mimeType: "image/png", data: png },
    ]);
    const input = endpoint.requests[0]?.body.input.at(-1);
    expect(input).toMatchObject({
      role: "user",
      content: expect.arrayContaining([
        {
          type: "input_text",
          text: `compare [@a b.ts](${work}/a b.ts)\n<context ref="${work}/c.ts">\nunsaved\n</context>\n`,
        },
        { type: "input_image", image_url: `data:image/png;base64,${png}` },
      ]),
    });
    expect(client.text("agent_thought_chunk")).toBe("hm\n\n");
    expect(client.of("usage_update")).toMatchObject([{ size: 272_000 }]);
  });

  it("goes on after a restart: it is listed, loaded with all that was said, or resumed without, and deleted", async () => {
    const yaml = `
steps:
  - text: I look.
    calls: [{ exec_command: { cmd: "echo out" } }]
  - text: Done.
  - text: Again.
`;
    const first = await scripted(yaml);
    const session = await first.open(work);
    await first.prompt(session, "hello");
    await first[Symbol.asyncDispose]();

    const client = await scripted("steps: [{ text: Here. }, { text: There. }]");
    expect((await client.agent.request("session/list", { cwd: work })).sessions).toMatchObject([
      { sessionId: session, cwd: work, title: "hello" },
    ]);
    expect((await client.agent.request("session/list", { cwd: folder })).sessions).toEqual([]);
    await client.agent.request("session/load", { sessionId: session, cwd: work, mcpServers: [] });
    expect(client.text("user_message_chunk")).toBe("hello");
    expect(client.text()).toBe("I look.\n\nDone.\n\n");
    expect(client.of("tool_call")).toMatchObject([{ title: "echo out" }]);
    expect(JSON.stringify(client.of("tool_call_update"))).toContain("out");
    await client.prompt(session, "and now?");
    expect(client.text()).toBe("I look.\n\nDone.\n\nHere.");

    client.updates.length = 0;
    await client.agent.request("session/resume", { sessionId: session, cwd: work });
    await client.prompt(session, "resumed?");
    expect(client.text("user_message_chunk")).toBe("");
    await client.agent.request("session/delete", { sessionId: session });
    expect((await client.agent.request("session/list", {})).sessions).toEqual([]);
    const gone = { sessionId: session, cwd: work, mcpServers: [] };
    expect(await client.refusal("session/load", gone)).toMatchObject({ code: -32_002 });
  });

  it("has several sessions at once, each in its own directory", async () => {
    const other = join(folder, "other");
    const extra = join(folder, "extra");
    await Promise.all([mkdir(other), mkdir(extra)]);
    const client = await scripted(`
steps:
  - calls: [{ exec_command: { cmd: "pwd > here; pwd > ${extra}/there; true" } }]
  - text: Done.
`);
    const [one, two] = await Promise.all([
      client.open(work),
      client.open(other, { additionalDirectories: [extra] }),
    ]);
    await expect.poll(() => containersOf(client.server.pid)).toHaveLength(2);
    expect(await Promise.all([client.prompt(one, "go"), client.prompt(two, "go")])).toEqual([
      "end_turn",
      "end_turn",
    ]);
    expect(await readFile(join(work, "here"), "utf8")).toBe(`${work}\n`);
    expect(await readFile(join(other, "here"), "utf8")).toBe(`${other}\n`);
    expect(await readFile(join(extra, "there"), "utf8")).toBe(`${other}\n`);
    await client.agent.request("session/close", { sessionId: one });
    expect(await containersOf(client.server.pid)).toHaveLength(1);
    expect(await client.refusal("session/prompt", { sessionId: one, prompt: [] })).toMatchObject({
      code: -32_002,
    });
  });

  it("that nobody talks to gives its container to others, and goes on in a new one", async () => {
    const client = await scripted(`
steps:
  - calls: [{ exec_command: { cmd: "touch /tmp/mark" } }]
  - text: One.
  - calls: [{ exec_command: { cmd: "test -e /tmp/mark && echo kept || echo fresh" } }]
  - text: Two.
`);
    const sessions: string[] = [];
    for (let at = 0; at < 10; at++) {
      const session = await client.open(work);
      sessions.push(session);
      await client.prompt(session, "go");
    }
    await expect.poll(() => containersOf(client.server.pid)).toHaveLength(8);
    const output = async (session: string | undefined) => {
      client.updates.length = 0;
      await client.prompt(session ?? "", "look");
      return /kept|fresh/.exec(JSON.stringify(client.of("tool_call_update").at(-1)))?.[0];
    };
    expect(await output(sessions[9])).toBe("kept");
    expect(await output(sessions[0])).toBe("fresh");
  });

  it("offers commands, which answer without the model", async () => {
    const client = await scripted("steps: [{ text: Done. }]");
    const session = await client.open(work);
    await client.until(() => client.of("available_commands_update").length > 0);
    expect(client.of("available_commands_update")[0]?.availableCommands.map(({ name }) => name)).toEqual([
      "status",
      "diff",
      "compact",
    ]);
    await client.prompt(session, "/status");
    expect(client.text()).toContain(`- workspace: \`${work}\``);
    await client.prompt(session, "/diff");
    expect(client.text()).toContain("the workspace is not in a git repository");
  });
});

describe("permission", () => {
  const asks = `
steps:
  - calls: [{ exec_command: { cmd: "touch one" } }]
  - calls: [{ exec_command: { cmd: "touch one" } }]
  - text: Done.
`;
  const untrusted = ["-a", "untrusted"];

  it("is asked for a command, with all of its characters", async () => {
    const client = await scripted(asks.replace("touch one", "touch one\\e]0;; touch two\\a"), {
      args: untrusted,
    });
    const session = await client.open(work);
    expect(await client.prompt(session, "go")).toBe("end_turn");
    expect(client.permissions).toHaveLength(2);
    expect(client.permissions[0]).toMatchObject({
      sessionId: session,
      toolCall: { kind: "execute", title: "touch one␛]0;; touch two␇" },
      options: [
        { kind: "allow_once" },
        { kind: "allow_always" },
        { kind: "reject_once", optionId: "reject_once" },
        { kind: "reject_once", optionId: "reject_and_stop" },
      ],
    });
    expect(JSON.stringify(client.permissions[0])).not.toContain("\\u001b");
    expect(client.of("tool_call").map(({ toolCallId }) => toolCallId)).toContain(
      client.permissions[0]?.toolCall.toolCallId,
    );
  });

  it("once for the session is not asked for again", async () => {
    const client = await scripted(asks, { args: untrusted, onPermission: () => "allow_always" });
    expect(await client.prompt(await client.open(work), "go")).toBe("end_turn");
    expect(client.permissions).toHaveLength(1);
    expect(await files()).toEqual(["one"]);
  });

  it.each([
    ["rejected", "reject_once", "end_turn", 2],
    ["rejected with the turn", "reject_and_stop", "cancelled", 1],
    ["dismissed", { outcome: { outcome: "cancelled" } }, "cancelled", 1],
    ["answered with an option that there is not", "allow_everything", "end_turn", 2],
    ["answered with nonsense", { outcome: 7 }, "end_turn", 2],
    ["answered with an error", () => Promise.reject(new Error("no")), "end_turn", 2],
  ])("that is %s starts nothing", async (_, answer, stopReason, questions) => {
    const onPermission = typeof answer === "function" ? answer : () => answer;
    const client = await scripted(asks, { args: untrusted, onPermission });
    expect(await client.prompt(await client.open(work), "go")).toBe(stopReason);
    expect(client.permissions).toHaveLength(questions);
    expect(await files()).toEqual([]);
  });

  it("that is never given is withdrawn by a cancel", async () => {
    const client = await scripted(asks, {
      args: untrusted,
      onPermission: () => new Promise(() => undefined),
    });
    const session = await client.open(work);
    const prompt = client.prompt(session, "go");
    await client.until(() => client.permissions.length === 1);
    await client.agent.notify("session/cancel", { sessionId: session });
    expect(await prompt).toBe("cancelled");
    expect(client.withdrawn).toHaveLength(1);
    expect(await files()).toEqual([]);
  });

  it("for a patch shows the patch", async () => {
    const client = await scripted(
      `
steps:
  - calls:
      - apply_patch: |
          *** Begin Patch
          *** Add File: new.txt
          +text
          *** End Patch
  - text: Done.
`,
      { args: untrusted },
    );
    await client.prompt(await client.open(work), "go");
    expect(client.permissions).toMatchObject([
      {
        toolCall: {
          kind: "edit",
          locations: [{ path: `${work}/new.txt` }],
          content: [{ content: { text: expect.stringContaining("+text") } }, { type: "content" }],
        },
      },
    ]);
    expect(await files()).toEqual(["new.txt"]);
  });

  it("to leave the sandbox says so", async () => {
    const client = await scripted(
      `
steps:
  - calls: [{ exec_command: { cmd: "touch .git-like", sandbox_permissions: require_escalated, justification: "I want to" } }]
  - text: Done.
`,
      { onPermission: () => "reject_once" },
    );
    await client.prompt(await client.open(work), "go");
    const [question] = client.permissions;
    expect(JSON.stringify(question)).toContain("**outside the sandbox**");
    expect(JSON.stringify(question)).toContain("I want to");
  });

  it("and questions of the model are forms, where the client has them", async () => {
    const client = await scripted(
      `
steps:
  - calls:
      - request_user_input:
          questions:
            - { id: colour, header: Colour, question: "Which?", options: [{ label: red, description: warm }, { label: blue, description: cold }] }
  - expect: [{ contains: '{"answers":{"colour":{"answers":["blue"]}}}' }]
    text: Done.
`,
      {
        capabilities: { elicitation: { form: {} } },
        onElicitation: () => ({ action: "accept", content: { choice0: "1" } }),
      },
    );
    expect(await client.prompt(await client.open(work), "go")).toBe("end_turn");
    expect(client.elicitations).toMatchObject([{ mode: "form", message: "Which?" }]);
  });
});

describe("MCP servers of the editor", () => {
  it("run in containers of their own, are asked about, and end with their session", async () => {
    await copyFile(plainServer, join(work, "server.mjs"));
    const client = await scripted(`
steps:
  - calls:
      - my_server__echo: { text: "hello there" }
      - my_server__wipe: {}
  - text: Done.
`);
    const stdio = { name: "my server", command: "node", args: [join(work, "server.mjs")], env: [] };
    const sse = { type: "sse" as const, name: "old one", url: "http://127.0.0.1:1/", headers: [] };
    const session = await client.open(work, { mcpServers: [stdio, sse] });
    expect(await client.prompt(session, "go")).toBe("end_turn");
    expect(client.text("agent_thought_chunk")).toContain("the MCP server old one is left out");
    expect(client.of("tool_call")).toMatchObject([
      { title: "my_server: echo", rawInput: { text: "hello there" } },
      { title: "my_server: wipe" },
    ]);
    expect(client.permissions).toMatchObject([{ toolCall: { title: "my_server: wipe" } }]);
    expect(JSON.stringify(client.of("tool_call_update"))).toContain("hello there");
    expect(await containersOf(client.server.pid)).toHaveLength(2);
    await client.agent.request("session/close", { sessionId: session });
    expect(await containersOf(client.server.pid)).toEqual([]);
  });

  it("that do not start keep nothing from working, and say so", async () => {
    const client = await scripted("steps: [{ text: Done. }]");
    const stdio = { name: "gone", command: "/no/such/program", args: [], env: [] };
    const session = await client.open(work, { mcpServers: [stdio] });
    expect(await client.prompt(session, "go")).toBe("end_turn");
    await client.until(() => client.text("agent_thought_chunk").includes("gone"));
    expect(await readdir(folder)).not.toContain("no");
  });
});

describe("modes and models", () => {
  it("a mode changes what commands may do, in a new container", async () => {
    const client = await scripted(`
steps:
  - calls: [{ exec_command: { cmd: "touch one" } }]
  - text: Done.
  - calls: [{ exec_command: { cmd: "touch two" } }]
  - text: Done.
`);
    const { sessionId, modes } = await client.agent.request("session/new", { cwd: work, mcpServers: [] });
    expect(modes).toMatchObject({ currentModeId: "auto", availableModes: { length: 3 } });
    await client.agent.request("session/set_mode", { sessionId, modeId: "read-only" });
    expect(client.of("current_mode_update")).toMatchObject([{ currentModeId: "read-only" }]);
    await client.prompt(sessionId, "go");
    expect(await files()).toEqual([]);
    await client.agent.request("session/set_mode", { sessionId, modeId: "auto" });
    await client.prompt(sessionId, "go");
    expect(await files()).toEqual(["two"]);
    expect(await containersOf(client.server.pid)).toHaveLength(1);
    expect(await client.refusal("session/set_mode", { sessionId, modeId: "yolo" })).toMatchObject({
      code: -32_602,
    });
  });

  it("another effort is asked of the endpoint from the next prompt on", async () => {
    await using endpoint = await startResponsesServer([turn({ text: "a" })]);
    const client = await start({
      env: { OPENAI_API_KEY: "sk-x", OPENAI_BASE_URL: endpoint.url },
      args: ["-m", "gpt-5"],
    });
    const { sessionId, configOptions } = await client.agent.request("session/new", {
      cwd: work,
      mcpServers: [],
    });
    expect(configOptions).toMatchObject([
      { id: "model", currentValue: "gpt-5" },
      { id: "reasoning_effort", currentValue: "default" },
    ]);
    await client.prompt(sessionId, "one");
    const set = { sessionId, configId: "reasoning_effort", value: "high" };
    const changed = await client.agent.request<SetSessionConfigOptionResponse>(
      "session/set_config_option",
      set,
    );
    expect(changed.configOptions[1]).toMatchObject({ currentValue: "high" });
    await client.prompt(sessionId, "two");
    expect(
      endpoint.requests.map(({ body }) => (body.reasoning as { effort?: string } | undefined)?.effort),
    ).toEqual([undefined, "high"]);
    const wrong = { sessionId, configId: "reasoning_effort", value: "endless" };
    expect(await client.refusal("session/set_config_option", wrong)).toMatchObject({ code: -32_602 });
  });
});

describe("an end", () => {
  it("by a cancel in the middle of a command leaves none of its processes", async () => {
    const client = await scripted(
      `${sleeps.replace("  - text: never\n", "")}  - calls: [{ exec_command: { cmd: "! pgrep sleep && echo gone" } }]
  - text: Done.
`,
    );
    const session = await client.open(work);
    const prompt = client.prompt(session, "go");
    await client.until(() => JSON.stringify(client.of("tool_call_update")).includes("fell asleep"));
    await client.agent.notify("session/cancel", { sessionId: session });
    expect(await prompt).toBe("cancelled");
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
    expect(await client.prompt(session, "look")).toBe("end_turn");
    expect(JSON.stringify(client.of("tool_call_update").at(-1))).toContain("gone");
  });

  it("of the client in the middle of a command ends everything, and the program", async () => {
    const client = await scripted(sleeps, { isProcess: true });
    const session = await client.open(work);
    void client.prompt(session, "go").catch(() => undefined);
    await client.until(() => JSON.stringify(client.of("tool_call_update")).includes("fell asleep"));
    expect(await containersOf(client.server.pid)).toHaveLength(1);
    client.server.stdin.end();
    expect(await client.server).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await containersOf(client.server.pid)).toEqual([]);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("by %s does so, too", async (signal) => {
    const client = await scripted(sleeps, { isProcess: true });
    const session = await client.open(work);
    void client.prompt(session, "go").catch(() => undefined);
    await client.until(() => JSON.stringify(client.of("tool_call_update")).includes("fell asleep"));
    client.server.kill(signal);
    expect((await client.server).exitCode).toBeGreaterThan(128);
    expect(await containersOf(client.server.pid)).toEqual([]);
  });
});

describe("bad input", () => {
  let served: { path: string; client: AcpClient; session: string; close(): Promise<void> };

  // One program answers all of it, which also shows that it goes on after each.
  beforeAll(async () => {
    const directory = await temporaryDirectory();
    const path = join(directory.path, "work");
    const file = join(directory.path, "script.yaml");
    await mkdir(path);
    await writeFile(file, `steps: [${"{ text: Done. }, ".repeat(20)}]`);
    const client = await AcpClient.start({
      isProcess: true,
      cwd: directory.path,
      home: join(directory.path, "home"),
      args: ["--script", file],
    });
    const session = await client.open(path);
    const close = async () => {
      await client[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    };
    served = { path, client, session, close };
  });

  afterAll(() => served.close());

  it.each([
    ["a relative directory", { cwd: "work" }, -32_602, /not an absolute path/],
    ["a directory that there is not", { cwd: "/nowhere/at/all" }, -32_602, /\/nowhere\/at\/all/],
    ["a relative additional directory", { additionalDirectories: ["../x"] }, -32_602, /not an absolute path/],
    ["no directory", { cwd: undefined }, -32_602, /Invalid params/],
  ])("a session in %s is refused", async (_, more, code, message) => {
    const { client, path, session } = served;
    const params = { cwd: path, mcpServers: [], ...more };
    const refusal = await client.refusal("session/new", params);
    expect(refusal).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await client.prompt(session, "go")).toBe("end_turn");
  });

  it.each([
    ["an unknown method", "session/dance", {}, -32_601],
    ["a second initialize", "initialize", { protocolVersion: 1 }, -32_600],
    [
      "an unknown session",
      "session/prompt",
      { sessionId: "x", prompt: [{ type: "text", text: "a" }] },
      -32_002,
    ],
    ["a load of one", "session/load", { sessionId: "../../etc", cwd: "/tmp", mcpServers: [] }, -32_002],
    ["a prompt without parts", "session/prompt", { sessionId: "OPEN", prompt: [] }, -32_602],
    [
      "a prompt with audio",
      "session/prompt",
      { sessionId: "OPEN", prompt: [{ type: "audio", data: "", mimeType: "audio/wav" }] },
      -32_602,
    ],
    [
      "a prompt with a broken picture",
      "session/prompt",
      { sessionId: "OPEN", prompt: [{ type: "image", data: "AAAA", mimeType: "image/png" }] },
      -32_602,
    ],
    ["another way to log in", "authenticate", { methodId: "magic" }, -32_602],
    ["a login without its key", "authenticate", { methodId: "api-key" }, -32_602],
    ["a cursor that nobody gave", "session/list", { cursor: "x" }, -32_602],
  ])("%s has its own error", async (_, method, params, code) => {
    const { client, session } = served;
    const real =
      "sessionId" in params && params.sessionId === "OPEN" ? { ...params, sessionId: session } : params;
    expect(await client.refusal(method, real)).toMatchObject({ code });
    expect(await client.prompt(session, "go")).toBe("end_turn");
  });

  it("leaves a client able to open and use another session", async () => {
    const { client, path } = served;
    expect(await client.prompt(await client.open(path), "go")).toBe("end_turn");
  });

  it("a prompt or a mode during a prompt is refused, and the prompt goes on", async () => {
    const client = await scripted(sleeps);
    const sessionId = await client.open(work);
    const prompt = client.prompt(sessionId, "go");
    await client.until(() => client.of("tool_call").length > 0);
    const second = { sessionId, prompt: [{ type: "text", text: "and this" }] };
    expect(await client.refusal("session/prompt", second)).toMatchObject({ code: -32_600 });
    expect(await client.refusal("session/set_mode", { sessionId, modeId: "auto" })).toMatchObject({
      code: -32_600,
    });
    await client.agent.notify("session/cancel", { sessionId });
    expect(await prompt).toBe("cancelled");
  });

  it("garbage is answered, and a message of 100 MB is not kept", async () => {
    const client = await scripted("steps: [{ text: Done. }]");
    await client.sendText('garbage\n[]\n{"jsonrpc":"1.0"}\n"text"\n');
    await client.sendText(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}\n`);
    await client.sendText(
      `{"jsonrpc":"2.0","id":"big","method":"x","params":[${"0,".repeat(1_000_000)}0]}\n`,
    );
    for (let at = 0; at < 100; at++) await client.sendText("x".repeat(1024 * 1024));
    await client.sendText("\n");
    await client.until(() => client.strays.length === 7);
    expect(client.strays.map(({ code }) => code)).toEqual([
      -32_700, -32_600, -32_600, -32_600, -32_600, -32_600, -32_600,
    ]);
    expect(await client.prompt(await client.open(work), "go")).toBe("end_turn");
  });

  it("a request before initialize is refused", async () => {
    const client = new AcpClient({ cwd: folder, home, args: await script("steps: [{ text: Done. }]") });
    onTestFinished(() => client[Symbol.asyncDispose]());
    expect(await client.refusal("session/new", { cwd: work, mcpServers: [] })).toMatchObject({
      code: -32_600,
    });
  });

  it("more sessions than a person has are refused, and only some have a container", async () => {
    const client = await scripted("steps: [{ text: Done. }]");
    const opened = await Promise.allSettled(Array.from({ length: 120 }, () => client.open(work)));
    expect(opened.filter(({ status }) => status === "rejected")).toHaveLength(20);
    await client[Symbol.asyncDispose]();
    expect(await containersOf(client.server.pid)).toEqual([]);
  });
});

describe("what is missing", () => {
  it("an engine is missed in words, and the session goes on when it is there", async () => {
    const client = await scripted("steps: [{ text: Done. }]", {
      env: { DOCKER_HOST: "unix:///proc/nonexistent" },
    });
    const sessionId = await client.open(work);
    const prompt = { sessionId, prompt: [{ type: "text", text: "go" }] };
    expect(await client.refusal("session/prompt", prompt)).toMatchObject({
      code: -32_603,
      message: expect.stringContaining("/proc/nonexistent"),
    });
  });

  it("an image is, too", async () => {
    const client = await scripted("steps: [{ text: Done. }]", {
      args: ["--container-image", "no/such:image"],
    });
    const sessionId = await client.open(work);
    const prompt = { sessionId, prompt: [{ type: "text", text: "go" }] };
    expect(await client.refusal("session/prompt", prompt)).toMatchObject({
      message: expect.stringContaining("no/such:image"),
    });
  });

  it("without a login a session needs one, and says how to get it; a key that is stored is used", async () => {
    await using endpoint = await startResponsesServer([
      respond(callDone("c", "exec_command", { cmd: "true" }), completed()),
      turn({ text: "in" }),
    ]);
    const client = await start({ args: ["-c", `openai_base_url="${endpoint.url}"`] });
    expect(await client.refusal("session/new", { cwd: work, mcpServers: [] })).toMatchObject({
      code: -32_000,
      message: expect.stringContaining("brig login"),
    });
    await client.agent.request("authenticate", {
      methodId: "api-key",
      _meta: { "api-key": { apiKey: "sk-stored" } },
    });
    await client.prompt(await client.open(work), "go");
    expect(endpoint.requests[0]?.headers.authorization).toBe("Bearer sk-stored");
    expect(client.text()).toBe("in");
  });

  it("a login in a terminal is offered to a client that has one", async () => {
    const client = new AcpClient({ cwd: folder, home });
    onTestFinished(() => client[Symbol.asyncDispose]());
    const { authMethods, protocolVersion } = await client.agent.request("initialize", {
      protocolVersion: 9,
      clientCapabilities: { auth: { terminal: true } },
    });
    expect(protocolVersion).toBe(1);
    expect(authMethods).toMatchObject([
      { id: "chatgpt" },
      { id: "api-key" },
      { type: "terminal", args: ["--login"] },
    ]);
  });
});

it("its help says what it is for", async () => {
  expect(await brigHere(["acp", "--help"])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining("Agent Client Protocol"),
  });
});
