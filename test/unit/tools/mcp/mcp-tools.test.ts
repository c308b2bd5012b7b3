import { describe, expect, it } from "vitest";
import type { ApprovalAnswer, ApprovalRequest } from "../../../../src/agent/approvals/approvals.js";
import { SessionApprovals } from "../../../../src/agent/approvals/approvals.js";
import type { ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";
import { CallScheduler } from "../../../../src/tools/call-scheduler.js";
import type { Elicit } from "../../../../src/tools/mcp/mcp-servers.js";
import { createToolRegistry, type ToolRegistryOptions } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";
import { openPlainServers, type PlainServer } from "../../../support/plain-mcp-servers.js";

/** Runs calls as a model makes them. */
async function open(servers: Record<string, PlainServer>, options: Partial<ToolRegistryOptions> = {}) {
  const mcp = openPlainServers(servers);
  await mcp.ready();
  const tools = createToolRegistry(new MemorySandbox(), { cwd: "/tmp", mcp, ...options });
  const activities: ToolActivity[] = [];
  const stop = new AbortController();
  const scheduler = new CallScheduler(tools, {
    signal: stop.signal,
    onActivity: (_, activity) => activities.push(activity),
  });
  const call = async (name: string, args: object | string = {}) =>
    await scheduler.run({
      callId: "c1",
      name,
      kind: "function",
      input: typeof args === "string" ? args : JSON.stringify(args),
    });
  const names = () => tools.getSpecs().map((spec) => ("name" in spec ? spec.name : spec.type));
  return { mcp, tools, call, names, activities, stop };
}

function approvals(policy: ApprovalPolicy, answers: ApprovalAnswer[] | null, isRestricted = true) {
  const asked: ApprovalRequest[] = [];
  const review = new SessionApprovals({
    situation: { policy, isRestricted, canEscalate: false, hasNetwork: false },
    approver:
      answers === null
        ? undefined
        : {
            ask(request) {
              asked.push(request);
              return Promise.resolve(answers.shift() ?? "denied");
            },
          },
  });
  return { review, asked };
}

describe("the tools of MCP servers", () => {
  it("are offered with brig's own, and answer as Codex words it", async () => {
    const { tools, call, names } = await open({ plain: {} });
    expect(names()).toEqual(expect.arrayContaining(["exec_command", "plain__echo", "plain__wipe"]));
    expect(tools.has("plain__echo")).toBe(true);
    expect(tools.get("plain__echo" as string).spec).toMatchObject({
      type: "function",
      name: "plain__echo",
      description: "Repeats a text.",
      strict: false,
      parameters: { type: "object", properties: { text: { type: "string" } } },
    });
    const { content, success } = await call("plain__echo", { text: "hi" });
    expect(success).toBe(true);
    expect(content).toMatch(
      /^Wall time: [0-9]+\.[0-9]{4} seconds\nOutput:\n\[\{"type":"text","text":"echo: hi"\}\]$/,
    );
  });

  it("say of a failure what the server says", async () => {
    const { call } = await open({ plain: {} });
    expect(await call("plain__fail")).toMatchObject({
      success: false,
      content: expect.stringContaining("it failed"),
    });
  });

  it("say what the user can do about a call that failed", async () => {
    const { call } = await open({ plain: { tools: [{ name: "login", inputSchema: {} }] } });
    expect(await call("plain__login")).toMatchObject({
      success: false,
      content: expect.stringContaining("\nhint: open https://example.com/login, then"),
    });
  });

  it("take nothing at all for no arguments, and refuse what is no object", async () => {
    const { call } = await open({ plain: {} });
    expect((await call("plain__echo", "")).content).toContain("echo: {}");
    expect((await call("plain__echo", "null")).content).toContain("echo: {}");
    for (const wrong of ["[1]", '"text"', "7"])
      expect(await call("plain__echo", wrong)).toMatchObject({
        success: false,
        content: "failed to parse function arguments: they must be a JSON object",
      });
    expect((await call("plain__echo", "{")).content).toMatch(/^failed to parse function arguments: /);
  });

  it("are other ones as soon as the server says so", async () => {
    const { mcp, call, names } = await open({ plain: {} });
    expect(names()).not.toContain("plain__grown");
    const changed = new Promise<void>((resolve) => mcp.onToolsChanged(resolve));
    await call("plain__grow");
    await changed;
    expect(names()).toContain("plain__grown");
    expect((await call("plain__grown", { text: "x" })).content).toContain("grown: x");
  });

  it("report progress, and end with the turn", async () => {
    const { call, activities, stop } = await open({ plain: {} });
    const hanging = call("plain__hang");
    await expect.poll(() => activities.map(({ kind }) => kind)).toContain("mcp-call-progress");
    expect(activities).toMatchObject([
      { kind: "mcp-call-started", server: "plain", tool: "hang", arguments: {} },
      { kind: "mcp-call-progress", progress: 1, total: 2 },
    ]);
    stop.abort(new Error("enough"));
    expect((await hanging).content).toMatch(/^aborted by user after /);
    expect(activities.at(-1)).toMatchObject({ kind: "mcp-call-ended", result: null, error: "enough" });
  });

  it("cut a long result to what the model may read", async () => {
    const { call } = await open({ plain: {} }, { truncation: { mode: "bytes", limit: 200 } });
    const { content } = await call("plain__echo", { text: "x".repeat(10_000) });
    expect(content.length).toBeLessThan(400);
    expect(content).toContain("chars truncated…");
  });

  it("that nobody knows are unsupported calls", async () => {
    const { call } = await open({ plain: {} });
    expect(await call("plain__nothing")).toMatchObject({ content: "unsupported call: plain__nothing" });
  });

  it("leave out those that are disabled", async () => {
    const { names } = await open({ plain: { settings: { disabledTools: ["wipe"] } } });
    expect(names()).toContain("plain__echo");
    expect(names()).not.toContain("plain__wipe");
  });

  it("have strict schemas for those who take no other", async () => {
    const { tools } = await open({ plain: {} });
    const spec = tools.getSpecs({ strict: true }).find((one) => "name" in one && one.name === "plain__echo");
    expect(spec).toMatchObject({
      strict: true,
      parameters: { additionalProperties: false, required: ["text"] },
    });
  });
});

describe("approval of a call", () => {
  it.each<[ApprovalPolicy, tool: string, isAsked: boolean]>([
    ["on-request", "wipe", true],
    ["untrusted", "wipe", true],
    ["on-failure", "wipe", true],
    ["never", "wipe", false],
    ["on-request", "echo", false],
    ["untrusted", "echo", false],
  ])("under %s, of %s: asked %s", async (policy, tool, isAsked) => {
    const { review, asked } = approvals(policy, ["approved"]);
    const { call } = await open({ plain: {} }, { review });
    expect((await call(`plain__${tool}`, { text: "x" })).content).toContain(`${tool}: x`);
    expect(asked).toHaveLength(isAsked ? 1 : 0);
    if (isAsked)
      expect(asked[0]).toMatchObject({
        place: "sandbox",
        prefix: null,
        action: {
          kind: "mcp-call",
          tool: "plain__wipe",
          server: "plain",
          name: "wipe",
          title: "Wipe it",
          arguments: { text: "x" },
        },
      });
  });

  it("is skipped with full access, and where the configuration approves the tool", async () => {
    const full = approvals("on-request", [], false);
    const first = await open({ plain: {} }, { review: full.review });
    expect((await first.call("plain__wipe")).success).toBe(true);
    const approving = approvals("on-request", []);
    const second = await open(
      { plain: { settings: { toolApproval: { wipe: "approve" } } } },
      { review: approving.review },
    );
    expect((await second.call("plain__wipe")).success).toBe(true);
    expect([...full.asked, ...approving.asked]).toEqual([]);
  });

  it("is asked for a harmless tool too if the configuration says so", async () => {
    const { review, asked } = approvals("on-request", ["approved"]);
    const { call } = await open({ plain: { settings: { defaultApproval: "prompt" } } }, { review });
    await call("plain__echo");
    expect(asked).toHaveLength(1);
  });

  it("for the session covers this tool of this server, and no other", async () => {
    const { review, asked } = approvals("on-request", ["approved_for_session", "denied"]);
    const { call } = await open({ one: {}, two: {} }, { review });
    expect((await call("one__wipe", { text: "a" })).success).toBe(true);
    expect((await call("one__wipe", { text: "b" })).success).toBe(true);
    expect(asked).toHaveLength(1);
    expect((await call("two__wipe")).success).toBe(false);
    expect(asked).toHaveLength(2);
  });

  it("that is refused is the answer, and the server is not called", async () => {
    const { review } = approvals("on-request", ["denied"]);
    const { call, activities } = await open({ plain: {} }, { review });
    expect(await call("plain__wipe")).toMatchObject({
      success: false,
      content: "user rejected MCP tool call",
    });
    expect(activities.slice(-2)).toMatchObject([
      { kind: "mcp-call-started", tool: "wipe" },
      { kind: "mcp-call-ended", result: null, error: "user rejected MCP tool call" },
    ]);
  });

  it.each<[ApprovalPolicy, string]>([
    ["on-request", "approval required by policy, but nobody is there to approve it"],
    [
      {
        granular: {
          sandbox_approval: true,
          rules: false,
          skill_approval: false,
          request_permissions: false,
          mcp_elicitations: false,
        },
      },
      "approval required by policy, but AskForApproval::Granular.mcp_elicitations is false",
    ],
  ])("without somebody to ask is refused under %j", async (policy, reason) => {
    const { review } = approvals(policy, null);
    const { call } = await open({ plain: {} }, { review });
    expect(await call("plain__wipe")).toMatchObject({
      success: false,
      content: `user cancelled MCP tool call: ${reason}`,
    });
  });
});

describe("a question of a server", () => {
  it("reaches the user during the call, whose time stands still", async () => {
    const asked: unknown[] = [];
    const elicit: Elicit = (question) => {
      asked.push(question);
      return Promise.resolve({ action: "accept", content: { colour: "blue" } });
    };
    const { call, activities } = await open({ plain: {} }, { elicit });
    expect((await call("plain__ask")).content).toContain("blue");
    expect(asked).toMatchObject([{ kind: "form", server: "plain", message: "Which colour?" }]);
    expect(activities.map(({ kind }) => kind)).toEqual([
      "mcp-call-started",
      "mcp-question-asked",
      "mcp-question-answered",
      "mcp-call-ended",
    ]);
  });

  it("is declined where nobody can answer", async () => {
    const { call } = await open({ plain: {} });
    expect((await call("plain__ask")).content).toContain("decline");
  });
});

describe("resources", () => {
  it("are listed by page for one server, and all of them for all servers", async () => {
    const { call } = await open({ b: {}, a: {}, none: { resources: false } });
    const json = async (name: string, args: object) =>
      JSON.parse((await call(name, args)).content) as unknown;
    expect(await json("list_mcp_resources", { server: "a" })).toEqual({
      server: "a",
      resources: [{ server: "a", uri: "plain://a", name: "a" }],
      nextCursor: "2",
    });
    expect(await json("mcp_list_resources", { server: "a", cursor: "2" })).toEqual({
      server: "a",
      resources: [{ server: "a", uri: "plain://b", name: "b" }],
    });
    const all = ["a", "b"].flatMap((server) =>
      ["a", "b"].map((name) => ({ server, uri: `plain://${name}`, name })),
    );
    expect(await json("list_mcp_resources", {})).toEqual({ resources: all });
    expect(JSON.parse((await call("list_mcp_resources", "")).content)).toEqual({ resources: all });
    expect(await json("list_mcp_resource_templates", { server: " ", cursor: "" })).toEqual({
      resourceTemplates: ["a", "b"].map((server) => ({ server, uriTemplate: "plain://{name}", name: "any" })),
    });
  });

  it("are read", async () => {
    const { call } = await open({ plain: {} });
    for (const name of ["read_mcp_resource", "mcp_read_resource"])
      expect(JSON.parse((await call(name, { server: "plain", uri: "plain://a" })).content)).toEqual({
        server: "plain",
        uri: "plain://a",
        contents: [{ uri: "plain://a", text: "content of a" }],
      });
  });

  it.each<[string, object, RegExp]>([
    ["list_mcp_resources", { cursor: "2" }, /^cursor can only be used when a server is specified$/],
    ["list_mcp_resources", { server: "no" }, /^resources\/list failed: unknown MCP server 'no'/],
    ["list_mcp_resource_templates", { server: "no" }, /^resources\/templates\/list failed: /],
    ["read_mcp_resource", { uri: "x" }, /^server must be provided$/],
    ["read_mcp_resource", { server: "plain", uri: " " }, /^uri must be provided$/],
    [
      "read_mcp_resource",
      { server: "plain", uri: "plain://z" },
      /^resources\/read failed: .*no such resource/,
    ],
    ["read_mcp_resource", { server: 7, uri: "x" }, /^failed to parse function arguments: /],
  ])("of %s %j: %s", async (name, args, message) => {
    const { call } = await open({ plain: {} });
    const { success, content } = await call(name, args);
    expect(success).toBe(false);
    expect(content).toMatch(message);
  });

  it("are offered only where there are servers, and not if they are turned off", async () => {
    const without = createToolRegistry(new MemorySandbox(), { cwd: "/tmp" });
    const names = without.getSpecs().map((spec) => ("name" in spec ? spec.name : ""));
    expect(names.filter((name) => /mcp|bm25/.test(name))).toEqual([]);
    const off = await open({ plain: {} }, { gates: { mcp_resources: false } });
    expect(off.names().filter((name) => name.includes("mcp"))).toEqual([]);
    expect((await off.call("list_mcp_resources")).content).toContain("is disabled in this session");
  });
});

describe("search_tool_bm25", () => {
  const tools = [
    { name: "create_invoice", description: "Makes an invoice.", inputSchema: { type: "object" } },
    {
      name: "send-mail",
      title: "Send a mail",
      description: "Posts a letter.",
      inputSchema: { type: "object" },
    },
  ];

  it("is offered with 100 tools or more, in place of them, and adds what it finds", async () => {
    const { names, call, tools: registry } = await open({ many: { count: 150, tools } });
    const ofServers = () => names().filter((name) => name.startsWith("many__"));
    expect(ofServers()).toEqual([]);
    expect(names()).toContain("search_tool_bm25");
    const first = JSON.parse(
      (await call("search_tool_bm25", { query: "invoices to create", limit: 2 })).content,
    );
    expect(first).toMatchObject({
      query: "invoices to create",
      total_tools: 159,
      tools: [
        {
          name: "many__create_invoice",
          server: "many",
          title: null,
          description: "Makes an invoice.",
          connector_name: null,
          input_keys: [],
          score: expect.any(Number),
        },
        { score: expect.any(Number) },
      ],
    });
    expect(ofServers()).toHaveLength(2);
    const second = JSON.parse((await call("search_tool_bm25", { query: "mail" })).content);
    expect(second.tools[0].name).toBe("many__send-mail");
    expect(second.active_selected_tools).toEqual(ofServers().toSorted());
    expect(ofServers()).toHaveLength(3);
    expect((await call("many__create_invoice")).success).toBe(true);
    expect(registry.getToolNames().filter((name) => name.startsWith("many__"))).toHaveLength(159);
  });

  it("is not offered with fewer, and not where it is turned off; it is where it is turned on", async () => {
    const few = await open({ few: { count: 3 } });
    expect(few.names()).not.toContain("search_tool_bm25");
    expect((await few.call("search_tool_bm25", { query: "x" })).content).toContain("is disabled");
    const off = await open({ many: { count: 150 } }, { gates: { search_tool_bm25: false } });
    expect(off.names()).toContain("many__tool_149");
    const on = await open({ few: { count: 3 } }, { gates: { search_tool_bm25: true } });
    expect(on.names()).toContain("search_tool_bm25");
    expect(on.names()).not.toContain("few__tool_0");
  });

  it("lets a tool be called that was not found, which is offered from then on", async () => {
    const { names, call } = await open({ many: { count: 150 } });
    expect((await call("many__tool_7", { text: "x" })).content).toContain("tool_7: x");
    expect(names()).toContain("many__tool_7");
  });

  it.each<[object, string]>([
    [{ query: " " }, "query must not be empty"],
    [{ query: "x", limit: 0 }, "limit must be greater than zero"],
    [{ query: "x", limit: -1 }, "limit must be greater than zero"],
  ])("refuses %j: %s", async (args, message) => {
    const { call } = await open({ few: {} }, { gates: { search_tool_bm25: true } });
    expect(await call("search_tool_bm25", args)).toMatchObject({ success: false, content: message });
  });

  it("finds nothing for words that no tool has, and only stop words", async () => {
    const { call } = await open({ few: {} }, { gates: { search_tool_bm25: true } });
    for (const query of ["zzzqqq", "the of to"])
      expect(JSON.parse((await call("search_tool_bm25", { query })).content).tools).toEqual([]);
  });
});
