import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createResponsesClient } from "../../../src/agent/model/responses/responses-client.js";
import { noCredentials } from "../../../src/agent/model/static-credentials.js";
import { runAgent } from "../../../src/agent/run-agent.js";
import type { SessionRecord } from "../../../src/agent/session/write/session-file.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { defineTool } from "../../../src/tools/define-tool.js";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.js";
import type { Tool } from "../../../src/tools/tool.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";
import {
  callDone,
  customCallDone,
  localShellCallDone,
  messageDone,
  type Reply,
  respond,
  startResponsesServer,
} from "../../support/responses-server.js";

const grammar = { type: "grammar", syntax: "lark", definition: "start: /.+/" } as const;
const picture = "data:image/png;base64,AAAA";

const shout = defineTool({
  name: "shout",
  description: "Says it louder.",
  parameters: z.object({ input: z.string() }),
  supportsParallel: true,
  isFreeform: true,
  spec: { type: "custom", name: "shout", description: "Says it louder.", format: grammar },
  run: ({ input }) => Promise.resolve({ content: input.toUpperCase(), success: true }),
});

const look = defineTool({
  name: "look",
  description: "Shows a picture.",
  parameters: z.object({}),
  supportsParallel: true,
  run: () =>
    Promise.resolve({
      content: "a picture",
      success: true,
      parts: [
        { type: "input_text", text: "here it is" },
        { type: "input_image", image_url: picture, detail: "high" },
      ],
    }),
});

const edit = defineTool({
  name: "edit",
  description: "Edits.",
  parameters: z.object({}),
  supportsParallel: false,
  run(_, { onActivity }) {
    onActivity?.({ kind: "patch-started", changes: [{ path: "/w/a", kind: "add" }], patch: "…" });
    onActivity?.({ kind: "patch-ended", changes: [{ path: "/w/a", kind: "add" }], success: true });
    return Promise.resolve({ content: "Done", success: true });
  },
});

/** The real registry with a few tools on top. */
function registryWith(sandbox: Promise<MemorySandbox>, ...more: Tool[]): ToolRegistry {
  const real = createToolRegistry(sandbox, { cwd: "/tmp" });
  const extra = new Map(more.map((tool) => [tool.name, tool]));
  return {
    ...real,
    has: (name) => extra.has(name) || real.has(name),
    get: ((name: string) => extra.get(name) ?? real.get(name)) as ToolRegistry["get"],
    getSpecs: () => [...real.getSpecs(), ...more.map(({ spec }) => spec)],
  };
}

async function play(first: Reply) {
  await using server = await startResponsesServer([first, respond(messageDone("Done."))]);
  const events: AgentEvent[] = [];
  const records: SessionRecord[] = [];
  const sandbox = Promise.resolve(new MemorySandbox());
  const result = await runAgent({
    prompt: "do it",
    model: createResponsesClient({
      provider: {
        id: "local",
        wireApi: "responses",
        baseUrl: server.url,
        credentials: noCredentials,
        headers: {},
        query: {},
        maxRequestRetries: 0,
        maxStreamRetries: 0,
        streamIdleTimeoutMs: 5000,
      },
      model: "gpt-5",
      threadId: "t",
    }),
    sandbox,
    tools: () => registryWith(sandbox, shout, look, edit),
    setting: {
      cwd: "/tmp",
      sandboxMode: "workspace-write",
      network: { kind: "none" },
      writableRoots: [],
      shell: "bash",
      timezone: "UTC",
    },
    session: { path: null, trouble: null, append: (record) => records.push(record), close: () => undefined },
    onEvent: (event) => events.push(event),
  });
  const [request, answer] = server.requests.map(({ body }) => body);
  return { result, events, records, request, input: answer?.input ?? [] };
}

describe("a freeform tool", () => {
  it("is declared with its grammar", async () => {
    const { request } = await play(respond(messageDone("Hi.")));
    expect(request?.tools).toContainEqual({
      type: "custom",
      name: "shout",
      description: "Says it louder.",
      format: grammar,
    });
  });

  it("gets the text of a custom call as it is, and is answered by an item of the same kind", async () => {
    const text = '{"not": json}\n*** "quoted"\n';
    const { input, records } = await play(respond(customCallDone("c1", "shout", text)));
    expect(input.slice(-2)).toEqual([
      { type: "custom_tool_call", call_id: "c1", name: "shout", input: text },
      { type: "custom_tool_call_output", call_id: "c1", output: text.toUpperCase() },
    ]);
    const items = records.filter(({ type }) => type === "response_item").map(({ payload }) => payload);
    expect(items).toEqual(expect.arrayContaining(input.slice(-2)));
  });

  it("takes a function call with the text as its one argument too", async () => {
    const { input } = await play(respond(callDone("c1", "shout", { input: "hey" })));
    expect(input.at(-1)).toEqual({ type: "function_call_output", call_id: "c1", output: "HEY" });
  });

  it.each([
    ["nope", "unsupported custom tool call: nope"],
    ["look", "tool look invoked with incompatible payload"],
  ])("that %s is not refuses a custom call", async (name, output) => {
    const { input, result } = await play(respond(customCallDone("c1", name, "text")));
    expect(input.at(-1)).toEqual({ type: "custom_tool_call_output", call_id: "c1", output });
    expect(result.status).toBe("completed");
  });
});

describe("an output with a picture", () => {
  it("reaches the model as a list of texts and pictures", async () => {
    const { input, events } = await play(respond(callDone("c1", "look", {})));
    expect(input.at(-1)).toEqual({
      type: "function_call_output",
      call_id: "c1",
      output: [
        { type: "input_text", text: "here it is" },
        { type: "input_image", image_url: picture, detail: "high" },
      ],
    });
    expect(events.find(({ kind }) => kind === "call-ended")).toMatchObject({ content: "a picture" });
  });
});

describe("a patch", () => {
  it("is told of as an event of its own call", async () => {
    const { events } = await play(respond(callDone("c1", "edit", {})));
    expect(events.filter(({ kind }) => kind.startsWith("patch-"))).toEqual([
      { kind: "patch-started", callId: "c1", changes: [{ path: "/w/a", kind: "add" }], patch: "…" },
      { kind: "patch-ended", callId: "c1", changes: [{ path: "/w/a", kind: "add" }], success: true },
    ]);
  });
});

describe("a local_shell_call without any id", () => {
  it("fails the turn, since nothing could answer it", async () => {
    const item = { type: "local_shell_call", action: { type: "exec", command: ["ls"] } };
    const { result } = await play(respond({ type: "response.output_item.done", item }));
    expect(result.status).toBe("failed");
    expect(result.error?.message).toContain("LocalShellCall without call_id or id");
  });

  it("but with one of its own is answered under that", async () => {
    const { input } = await play(respond(localShellCallDone(null, { command: ["echo", "hi"] })));
    expect(input.at(-1)).toMatchObject({ type: "function_call_output", call_id: "lsh_1" });
  });
});
