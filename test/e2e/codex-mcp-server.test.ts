import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RawMcpClient, startMcpServer, type WireMessage } from "../support/mcp-server-process.js";
import {
  callDone,
  completed,
  created,
  customCallDone,
  messageDone,
  type Reply,
  reasoningDone,
  respond,
  textDelta,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

type Server = Awaited<ReturnType<typeof startMcpServer>>;

/** What Codex sends that brig does not, and the other way round. */
const differences = {
  /** Copies of the items that the model is sent. brig writes them only to the session file. */
  raw_response_item: "codex",
  raw_response_completed: "codex",
  /**
   * The diff of all files since the turn began. For brig, this would mean comparing whole trees in the
   * sandbox at each call.
   */
  turn_diff: "codex",
  /** The connections to MCP servers, which are not events in brig. */
  mcp_startup_complete: "codex",
  /** Codex 0.153 refuses the tool for which older versions sent this event. */
  plan_update: "brig",
} as const;

/** A response whose text comes in pieces. */
function streamed(text: string): Reply {
  const item = { type: "message", id: "msg_1", role: "assistant", content: [] };
  const deltas = (text.match(/.{1,4}/gs) ?? []).map(textDelta);
  const events = [
    created(),
    { type: "response.output_item.added", item },
    ...deltas,
    messageDone(text),
    completed(),
  ];
  return { kind: "stream", events };
}

const exec = (id: string, cmd: string, more: object = {}) =>
  callDone(id, "exec_command", { cmd, login: false, shell: "/bin/bash", ...more });
const escalated = (id: string, cmd: string) =>
  respond(exec(id, cmd, { sandbox_permissions: "require_escalated", justification: "May I?" }));
const patch = (id: string, text: string) =>
  respond(customCallDone(id, "apply_patch", `*** Begin Patch\n${text}\n*** End Patch\n`));

/** Runs the same calls on both servers, first on brig, then on Codex. */
async function sideBySide<T>(
  replies: readonly Reply[],
  run: (server: Server) => Promise<T>,
): Promise<{ brig: T; codex: T; servers: { brig: Server; codex: Server } }> {
  await using one = await temporaryDirectory();
  await using other = await temporaryDirectory();
  await using brig = await startMcpServer("brig", { directory: one.path, replies });
  await using codex = await startMcpServer("codex", { directory: other.path, replies });
  for (const { client } of [brig, codex]) await client.initialize();
  return { brig: await run(brig), codex: await run(codex), servers: { brig, codex } };
}

/**
 * The types of the events, and where the questions are in between. Pieces of output are left out: how many there are is
 * chance, and Codex sends none if a command ends at once.
 */
function sequence({ messages }: RawMcpClient, isKnown = true): string[] {
  const all = messages.flatMap(({ method, params }) => {
    const type = params?.msg?.type;
    if (method === "elicitation/create") return [String(params?.codex_elicitation)];
    if (type === undefined) return [];
    const item = (params?.msg?.item as { type: string } | undefined)?.type;
    return [item === undefined ? type : `${type} ${item}`];
  });
  const kept = isKnown ? all.filter((type) => !Object.hasOwn(differences, type.split(" ")[0] ?? "")) : all;
  return kept.filter((type) => type !== "exec_command_output_delta");
}

/** An answer without ids, directories and versions, which differ from run to run. */
function comparable({ result, error }: WireMessage, { workspace }: Server): unknown {
  const text = JSON.stringify({ result, error })
    .replaceAll(workspace, "WORKSPACE")
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID");
  return JSON.parse(text);
}

const go = async ({ client }: Server, args: object = {}) =>
  await client.call("codex", { prompt: "go", ...args }).answer;

/** The last Codex that has an `mcp-server`. */
const codex = await testProgram("codex-mcp-server");

describe.skipIf(codex.missing !== null)(withReason("beside codex mcp-server 0.153", codex.missing), () => {
  describe("without a session", () => {
    let servers: { brig: Server; codex: Server };
    const disposables: AsyncDisposable[] = [];

    beforeAll(async () => {
      const open = async (kind: "brig" | "codex") => {
        const directory = await temporaryDirectory();
        const server = await startMcpServer(kind, { directory: directory.path, replies: [] });
        disposables.push(directory, server);
        return server;
      };
      servers = { brig: await open("brig"), codex: await open("codex") };
      for (const { client } of Object.values(servers)) await client.initialize();
    });

    afterAll(async () => {
      for (const disposable of disposables.toReversed()) await disposable[Symbol.asyncDispose]();
    });

    const both = async (method: string, params: object) => ({
      brig: comparable(await servers.brig.client.request(method, params), servers.brig),
      codex: comparable(await servers.codex.client.request(method, params), servers.codex),
    });

    it("lists the same tools, with the parameters of older versions besides", async () => {
      const { brig, codex } = (await both("tools/list", {})) as Record<"brig" | "codex", ListedTools>;
      const older = ["profile", "include-plan-tool"];
      expect(Object.keys(brig.result.tools[0]?.inputSchema.properties ?? {})).toEqual(
        expect.arrayContaining(older),
      );
      for (const name of older) delete brig.result.tools[0]?.inputSchema.properties[name];
      delete brig.result.tools[1]?.inputSchema.properties.sessionId;
      // Of the four policies, Codex 0.153 has kept two.
      const policies = ({ result }: ListedTools) =>
        result.tools[0]?.inputSchema.properties["approval-policy"];
      expect(policies(codex)?.enum).toEqual(["on-request", "never"]);
      expect(policies(brig)?.enum).toEqual(["untrusted", "on-failure", "on-request", "never"]);
      for (const listed of [brig, codex])
        delete listed.result.tools[0]?.inputSchema.properties["approval-policy"];
      expect(brig).toEqual(codex);
    });

    const id = "01a20476-0000-7000-8000-000000000000";
    it.each([
      ["an unknown tool", { name: "nope", arguments: {} }],
      ["no arguments", { name: "codex" }],
      ["no prompt", { name: "codex", arguments: {} }],
      ["no arguments to codex-reply", { name: "codex-reply" }],
      ["no prompt to codex-reply", { name: "codex-reply", arguments: { threadId: id } }],
      ["no session", { name: "codex-reply", arguments: { prompt: "x" } }],
      ["a session that there is not", { name: "codex-reply", arguments: { prompt: "x", threadId: id } }],
      ["its old name", { name: "codex-reply", arguments: { prompt: "x", conversationId: id } }],
    ])("answers %s in the same words", async (_, params) => {
      const { brig, codex } = await both("tools/call", params);
      expect(brig).toEqual(codex);
    });

    // Of a wrong argument brig speaks in the words of the library that checks it, as it does for every tool.
    it.each([
      ["an unknown parameter", { prompt: "x", foo: 1 }, /unknown field `foo`|Unrecognized key: "foo"/],
      [
        "a wrong value",
        { prompt: "x", sandbox: "bogus" },
        /expected one of .read-only.[,|] ?.workspace-write./,
      ],
      ["a value of a wrong type", { prompt: 3 }, /expected/],
      ["a wrong setting", { prompt: "x", config: { sandbox_mode: 3 } }, /from overrides: /],
    ])("refuses %s as well", async (_, args, words) => {
      const { brig, codex } = await both("tools/call", { name: "codex", arguments: args });
      for (const answer of [brig, codex] as WireMessage[]) {
        expect(answer.result).toMatchObject({ isError: true });
        expect(answer.result).not.toHaveProperty("structuredContent");
        expect(answer.result?.content?.[0]?.text).toMatch(words);
      }
    });

    it("refuses a second initialize and an unknown method with the same codes", async () => {
      const again = await both("initialize", {
        protocolVersion: "2025-06-18",
        capabilities: {},
        clientInfo: { name: "test", version: "1" },
      });
      for (const answer of Object.values(again)) expect(answer).toMatchObject({ error: { code: -32_600 } });
      const unknown = await both("nope/nope", {});
      for (const answer of Object.values(unknown)) expect(answer).toMatchObject({ error: { code: -32_601 } });
    });
  });

  it("tells of a turn with text, commands and patches in the same order", async () => {
    const replies = [
      respond(reasoningDone("Thinking.", "gAAA"), messageDone("I look."), exec("c1", "echo hi; exit 3")),
      patch("c2", "*** Add File: new.txt\n+one"),
      patch("c3", "*** Update File: new.txt\n@@\n-one\n+two"),
      patch("c4", "*** Update File: none.txt\n@@\n-one\n+two"),
      respond(callDone("c5", "nonexistent", {})),
      streamed("All is done."),
    ];
    const { brig, codex } = await sideBySide(replies, async (server) => {
      const result = comparable(await go(server, { sandbox: "workspace-write" }), server);
      return { result, sequence: sequence(server.client), client: server.client };
    });
    expect(brig.result).toEqual(codex.result);
    // The scripted endpoint does not announce the item of the first message, and Codex then leaves out its pieces.
    expect(brig.sequence).toEqual(codex.sequence);
    expect(brig.sequence).toContain("agent_message_content_delta");
    for (const type of [
      "exec_command_end",
      "patch_apply_end",
      "token_count",
      "agent_message",
      "task_complete",
    ])
      expect([type, fieldsOf(brig.client, type)]).toEqual([type, fieldsOf(codex.client, type)]);
    const only = (kind: "brig" | "codex") => new Set(sequence({ brig, codex }[kind].client, false));
    for (const [type, kind] of Object.entries(differences))
      if (kind === "codex") expect([type, only("brig").has(type)]).toEqual([type, false]);
  });

  it("tells of a second turn, and of one that the model's endpoint refuses", async () => {
    const refused: Reply = { kind: "status", status: 400, body: { error: { message: "bad request here" } } };
    const { brig, codex } = await sideBySide(
      [streamed("One."), streamed("Two."), refused],
      async (server) => {
        const first = await go(server);
        const threadId = first.result?.structuredContent?.threadId;
        const answers = [first];
        for (const key of ["threadId", "conversationId"])
          answers.push(await server.client.call("codex-reply", { prompt: "on", [key]: threadId }).answer);
        return { answers: answers.map((one) => comparable(one, server)), sequence: sequence(server.client) };
      },
    );
    expect(brig.answers.slice(0, 2)).toEqual(codex.answers.slice(0, 2));
    for (const { answers } of [brig, codex])
      expect(answers[2]).toMatchObject({
        result: {
          isError: true,
          structuredContent: { content: expect.stringContaining("bad request here") },
        },
      });
    expect(brig.sequence).toEqual(codex.sequence);
  });

  it.each([
    ["approved", { decision: "approved" }],
    ["denied", { decision: "denied" }],
    ["an answer that says nothing", {}],
  ])("asks for approval with the same parameters: %s", async (_, reply) => {
    const replies = [escalated("c1", "echo hi"), streamed("Done.")];
    const { brig, codex } = await sideBySide(replies, async (server) => {
      const call = go(server);
      const question = await server.client.answerQuestion({ result: reply });
      return {
        params: JSON.parse(
          JSON.stringify(question.params)
            .replaceAll(server.workspace, "WORKSPACE")
            .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID"),
        ),
        result: comparable(await call, server),
        sequence: sequence(server.client),
      };
    });
    expect(brig.result).toEqual(codex.result);
    expect(brig.sequence).toEqual(codex.sequence);
    // brig's question is also one that a client can show, with what it would mean.
    const { message, requestedSchema, ...extras } = brig.params;
    const { message: sentence, requestedSchema: none, ...expected } = codex.params;
    expect(extras).toEqual(expected);
    expect(message).toContain(sentence);
    expect(none).toEqual({ type: "object", properties: {} });
    expect(requestedSchema).toMatchObject({ required: ["decision"] });
  });

  it("asks about a patch as Codex does, but before it begins", async () => {
    const replies = [patch("c1", "*** Add File: new.txt\n+one"), streamed("Done.")];
    const { brig, codex } = await sideBySide(replies, async (server) => {
      const call = go(server, { "approval-policy": "on-request", sandbox: "read-only" });
      const question = await server.client.answerQuestion({ result: { decision: "approved" } });
      const { codex_changes: changes, codex_elicitation: kind } = question.params ?? {};
      return {
        question: JSON.stringify({ changes, kind }).replaceAll(server.workspace, "WORKSPACE"),
        result: comparable(await call, server),
        types: sequence(server.client).toSorted(),
      };
    });
    expect(brig).toEqual(codex);
  });

  // In Codex, the events of the next turn may go to the cancelled call, so that the next call is never answered.
  it("does not answer a cancelled call", async () => {
    const replies = [respond(exec("c1", "sleep 15", { yield_time_ms: 30_000 }))];
    const { brig, codex } = await sideBySide(replies, async ({ client }) => {
      const call = client.call("codex", { prompt: "go", sandbox: "danger-full-access" });
      await client.event("exec_command_begin");
      client.send({ method: "notifications/cancelled", params: { requestId: call.id } });
      await client.event("turn_aborted");
      await client.request("ping", {});
      const isAnswered = client.messages.some(({ id, method }) => id === call.id && method === undefined);
      return { isAnswered, aborted: fieldsOf(client, "turn_aborted"), sequence: sequence(client) };
    });
    expect(brig).toEqual(codex);
    expect(brig.isAnswered).toBe(false);
  });
});

interface ListedTools {
  result: { tools: { inputSchema: { properties: Record<string, { enum?: string[] }> } }[] };
}

/** Fields of Codex for which brig has no value. */
const unknownFields: Record<string, readonly string[]> = {
  // The number of a terminal session, which only the model and its tool need.
  exec_command_end: ["process_id"],
};

function fieldsOf(client: RawMcpClient, type: string): string[] {
  const [first] = client.events(type);
  const left = unknownFields[type] ?? [];
  return Object.keys(first?.params?.msg ?? {})
    .filter((name) => !left.includes(name))
    .toSorted();
}
