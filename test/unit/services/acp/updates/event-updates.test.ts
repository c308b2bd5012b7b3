import type { SessionUpdate } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AgentEvent } from "../../../../../src/agent/turn/events.js";
import { BrigError } from "../../../../../src/errors.js";
import { featuresOf } from "../../../../../src/services/acp/client-link.js";
import { EventUpdates } from "../../../../../src/services/acp/updates/event-updates.js";
import { expectExact, schema } from "../../../../support/acp-schema.js";

const plain = featuresOf(undefined);
const usage = { userMs: 0, systemMs: 0, maxRssBytes: 0 };

function translate(events: readonly AgentEvent[], features = plain): SessionUpdate[] {
  const sent: SessionUpdate[] = [];
  const updates = new EventUpdates({ features, cwd: "/w", send: (update) => void sent.push(update) });
  onTestFinished(() => updates.close());
  for (const event of events) updates.take(event);
  for (const update of sent) expectExact(schema.zSessionNotification, { sessionId: "s", update });
  return sent;
}

const call = (input: object | string, name = "exec_command", callId = "c"): AgentEvent => ({
  kind: "call-started",
  callId,
  name,
  input: typeof input === "string" ? input : JSON.stringify(input),
});
const ended = (content: string, success = true): AgentEvent => ({
  kind: "call-ended",
  callId: "c",
  name: "x",
  content,
  success,
  durationMs: 1,
});
const command: AgentEvent = {
  kind: "command-started",
  callId: "c",
  argv: ["/bin/bash", "-lc", "ls -l"],
  cwd: "/w",
};
const exit = (exitCode: number, output: string): AgentEvent => ({
  kind: "command-ended",
  callId: "c",
  exitCode,
  output,
  durationMs: 1,
  usage,
});
const text = (update: SessionUpdate | undefined) =>
  update !== undefined &&
  "content" in update &&
  !Array.isArray(update.content) &&
  update.content?.type === "text"
    ? update.content.text
    : null;

describe("messages", () => {
  it("are sent as they are streamed, and not again when they are complete", () => {
    const sent = translate([
      { kind: "text-delta", text: "Hel" },
      { kind: "text-delta", text: "lo" },
      { kind: "message", text: "Hello" },
    ]);
    expect(sent.map(text)).toEqual(["Hel", "lo"]);
  });

  it("that were not streamed are sent whole, apart from the one before", () => {
    const sent = translate([
      { kind: "message", text: "one" },
      { kind: "message", text: "two" },
    ]);
    expect(sent.map(text)).toEqual(["one", "\n\ntwo"]);
  });

  it("keep a sign that arrives in halves, and lose control sequences that do", () => {
    const sent = translate([
      { kind: "text-delta", text: "a\ud83d" },
      { kind: "text-delta", text: "\ude00\x1b]0;ti" },
      { kind: "text-delta", text: "tle\x07b\x1b[2" },
      { kind: "text-delta", text: "Jc" },
    ]);
    expect(sent.map(text).join("")).toBe("a😀bc");
  });
});

describe("a command", () => {
  const run = [call({ cmd: "ls -l" }), command];

  it("is a call with its script as title, and ends with its output and exit code", () => {
    const sent = translate([...run, exit(3, "no\n"), ended("Exit code: 3\nno")]);
    expect(sent).toMatchObject([
      { sessionUpdate: "tool_call", toolCallId: "c", title: "ls -l", kind: "execute", status: "pending" },
      { sessionUpdate: "tool_call_update", status: "in_progress", title: "ls -l" },
      {
        status: "failed",
        rawOutput: { exit_code: 3 },
        content: [{ type: "content", content: { type: "text", text: "```\nno\n```" } }],
      },
    ]);
    expect(sent).toHaveLength(3);
  });

  it("shows its output while it runs, now and then, without control sequences", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const sent: SessionUpdate[] = [];
    const updates = new EventUpdates({ features: plain, cwd: "/w", send: (one) => void sent.push(one) });
    for (const event of run) updates.take(event);
    for (const piece of ["a", "\x1b[31", "mb\x1b]0;x\x07", "\n```"])
      updates.take({ kind: "command-output", callId: "c", chunk: Buffer.from(piece) });
    expect(sent).toHaveLength(2);
    vi.advanceTimersByTime(1000);
    expect(sent).toHaveLength(3);
    expect(sent[2]).toMatchObject({ content: [{ content: { text: "````\nab\n```\n````" } }] });
    updates.close();
  });

  it("shows only the end of a flood, and says how much is missing", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const sent: SessionUpdate[] = [];
    const updates = new EventUpdates({ features: plain, cwd: "/w", send: (one) => void sent.push(one) });
    for (const event of run) updates.take(event);
    for (let at = 0; at < 1000; at++)
      updates.take({ kind: "command-output", callId: "c", chunk: Buffer.alloc(64 * 1024, "x") });
    vi.advanceTimersByTime(1000);
    expect(sent).toHaveLength(3);
    expect(JSON.stringify(sent[2]).length).toBeLessThan(20_000);
    expect(JSON.stringify(sent[2])).toContain(`… ${1000 * 64 * 1024 - 16 * 1024} bytes before this`);
    updates.close();
  });

  it("is a terminal where the client draws one: each byte once, colours stay, and the rest of a flood is counted", () => {
    const features = featuresOf({ _meta: { terminal_output: true } });
    const sent = translate(
      [
        ...run,
        { kind: "command-output", callId: "c", chunk: Buffer.from("\x1b[31mred\x1b[0m\x1b]52;c;x\x07\n") },
        { kind: "command-output", callId: "c", chunk: Buffer.alloc(2 * 1024 * 1024, "x") },
        exit(0, "red"),
        ended("red"),
      ],
      features,
    );
    expect(sent[1]).toMatchObject({
      content: [{ type: "terminal", terminalId: "c" }],
      _meta: { terminal_info: { terminal_id: "c", cwd: "/w" } },
    });
    const data = sent.flatMap((one) => {
      const meta = one._meta?.terminal_output as { data: string } | undefined;
      return meta === undefined ? [] : [meta.data];
    });
    expect(data.join("").startsWith("\x1b[31mred\x1b[0m\nxxx")).toBe(true);
    expect(data.join("")).toMatch(/… \d+ more bytes are not shown\n$/);
    expect(data.join("").length).toBeLessThan(1024 * 1024 + 100);
    expect(sent.at(-2)?._meta).toEqual({ terminal_exit: { terminal_id: "c", exit_code: 0, signal: null } });
    expect(sent.at(-1)).toEqual({
      sessionUpdate: "tool_call_update",
      toolCallId: "c",
      status: "completed",
      rawOutput: { exit_code: 0 },
    });
  });

  it("that was declined shows why", () => {
    const sent = translate([
      call({ cmd: "rm -rf /" }),
      { kind: "command-declined", callId: "c", argv: ["rm"], cwd: "/w", reason: "rejected by user" },
      ended("rejected by user", false),
    ]);
    expect(sent.at(-1)).toMatchObject({
      status: "failed",
      content: [{ content: { text: "```\nrejected by user\n```" } }],
    });
  });

  it("that is running when the turn is interrupted has failed", () => {
    const sent = translate([...run, { kind: "turn-interrupted" }]);
    expect(sent.at(-1)).toMatchObject({ toolCallId: "c", status: "failed" });
  });
});

describe("a patch", () => {
  const patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n";
  const changes = [{ path: "/w/a", kind: "update" as const }];
  const started: AgentEvent[] = [
    call(patch, "apply_patch"),
    { kind: "patch-started", callId: "c", changes, patch },
  ];

  it("is a call with the files that it changes, and their texts before and after", () => {
    const diffs = [{ path: "/w/a", movedFrom: null, before: "x\n", after: "y\n" }];
    const sent = translate([
      ...started,
      { kind: "patch-ended", callId: "c", changes, diffs, success: true },
      ended("Success"),
    ]);
    expect(sent[0]).toMatchObject({ kind: "edit", title: "Edit a", locations: [{ path: "/w/a" }] });
    const diff = { type: "diff", path: "/w/a", oldText: "x\n", newText: "y\n" };
    expect(sent.at(-1)).toMatchObject({ status: "completed", content: [diff] });
  });

  it("of large files has a sentence instead of each text", () => {
    const diffs = Array.from({ length: 300 }, (_, at) => ({
      path: `/w/${at}`,
      movedFrom: null,
      before: "x".repeat(at < 2 ? 10_000_000 : 50_000),
      after: "",
    }));
    const sent = translate([
      ...started,
      { kind: "patch-ended", callId: "c", changes, diffs, success: true },
      ended("ok"),
    ]);
    const last = JSON.stringify(sent.at(-1));
    expect(last).toContain("/w/0 has changed; it is too long to be shown here");
    expect(last).toContain("and 100 more files");
    expect(last.length).toBeLessThan(3_000_000);
  });

  it("that failed half way shows what was done, and why not the rest", () => {
    const diffs = [{ path: "/w/a", movedFrom: null, before: null, after: "y\n" }];
    const sent = translate([
      ...started,
      { kind: "patch-ended", callId: "c", changes, diffs, success: false },
      ended("Failed to write", false),
    ]);
    expect(sent.at(-1)).toMatchObject({
      status: "failed",
      content: [{ type: "diff" }, { content: { text: "```\nFailed to write\n```" } }],
    });
  });
});

describe("other events", () => {
  it.each([
    [
      call({ file_path: "/w/a", offset: 7 }, "read_file"),
      { kind: "read", title: "Read /w/a", locations: [{ path: "/w/a", line: 7 }] },
    ],
    [
      call({ pattern: "TODO", path: "src" }, "grep_files"),
      { kind: "search", title: "Search for TODO in src", locations: [{ path: "/w/src" }] },
    ],
    [call({ dir_path: "/w" }, "list_dir"), { kind: "search", title: "List /w" }],
    [call({ a: 1 }, "server__do"), { kind: "other", title: "server: do", rawInput: { a: 1 } }],
    [call("{", "exec_command"), { kind: "execute", title: "exec_command" }],
    [call({ command: ["bash", "-lc", "make"] }, "shell"), { title: "make" }],
  ])("a call is shown by what it does: %j", (event, expected) => {
    expect(translate([event])).toMatchObject([expected]);
  });

  it("a plan replaces the one before; its call is not shown", () => {
    const steps = [{ step: "a", status: "in_progress" as const }];
    expect(
      translate([
        call({ plan: [] }, "update_plan"),
        { kind: "plan-updated", callId: "c", explanation: null, steps },
        ended("Plan updated"),
      ]),
    ).toEqual([
      { sessionUpdate: "plan", entries: [{ content: "a", priority: "medium", status: "in_progress" }] },
    ]);
  });

  it("reasoning is a thought, and an empty one is nothing", () => {
    const sent = translate([
      { kind: "reasoning", text: "" },
      { kind: "reasoning", text: "hm" },
    ]);
    expect(sent.map((one) => [one.sessionUpdate, text(one)])).toEqual([["agent_thought_chunk", "hm\n\n"]]);
  });

  it("what brig has to say is a notice where the client knows them, and a thought elsewhere", () => {
    const warning: AgentEvent = { kind: "warning", message: "careful\x1b[2J" };
    expect(translate([warning])).toMatchObject([
      { sessionUpdate: "agent_thought_chunk", content: { text: "brig: a warning of brig: careful\n\n" } },
    ]);
    expect(translate([warning], featuresOf({ session: { notices: {} } }))).toEqual([
      { sessionUpdate: "notice", severity: "warning", title: "a warning of brig", description: "careful" },
    ]);
  });

  it("a compaction is told of in the client's words", () => {
    const events: AgentEvent[] = [
      { kind: "compaction-started", reason: "request" },
      { kind: "compacted", reason: "request", tokensBefore: 9, tokensAfter: 1 },
    ];
    expect(translate(events)).toHaveLength(1);
    const [first, second] = translate(events, featuresOf({ session: { compaction: {} } }));
    expect([first, second]).toMatchObject([{ status: "in_progress" }, { status: "completed" }]);
    expect(first).toHaveProperty("compactionId", (second as { compactionId: string }).compactionId);
  });

  it("a failed turn ends what it left open", () => {
    const error = new BrigError("x", { code: "model.failed" });
    expect(translate([call({ cmd: "x" }), { kind: "turn-failed", error }]).at(-1)).toMatchObject({
      status: "failed",
    });
  });
});

const hostileText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.constantFrom(
    "\x1b]52;c;aGk=\x07",
    "\u202e",
    "\ud800",
    "x".repeat(2_000_000),
    "`".repeat(5000),
    "\0",
    "\r\n\t",
  ),
);
const hostileEvent: fc.Arbitrary<AgentEvent> = fc.oneof(
  fc.record({ kind: fc.constant("text-delta" as const), text: hostileText }),
  fc.record({ kind: fc.constant("message" as const), text: hostileText.map((one) => one.slice(0, 1000)) }),
  fc.record({ kind: fc.constant("reasoning" as const), text: hostileText }),
  fc.record({ kind: fc.constant("warning" as const), message: hostileText }),
  fc.record({
    kind: fc.constant("call-started" as const),
    callId: fc.constantFrom("a", "b"),
    name: fc.oneof(fc.constantFrom("exec_command", "apply_patch", "read_file", "update_plan"), hostileText),
    input: fc.oneof(
      hostileText,
      fc.json(),
      hostileText.map((cmd) => JSON.stringify({ cmd, file_path: cmd, offset: -1, command: [cmd] })),
      hostileText.map((path) => `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch`),
    ),
  }),
  fc.record({
    kind: fc.constant("command-started" as const),
    callId: fc.constantFrom("a", "b", "c"),
    argv: fc.array(hostileText, { maxLength: 4 }),
    cwd: hostileText.map((one) => one.slice(0, 1000)),
  }),
  fc.record({
    kind: fc.constant("command-output" as const),
    callId: fc.constantFrom("a", "b", "c"),
    chunk: fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.constant(new Uint8Array(2_000_000))),
  }),
  fc.record({
    kind: fc.constant("command-ended" as const),
    callId: fc.constantFrom("a", "b", "c"),
    exitCode: fc.integer({ min: 0, max: 255 }),
    output: hostileText,
    durationMs: fc.constant(1),
    usage: fc.constant(usage),
  }),
  fc.record({
    kind: fc.constant("call-ended" as const),
    callId: fc.constantFrom("a", "b", "c"),
    name: hostileText,
    content: hostileText,
    success: fc.boolean(),
    durationMs: fc.constant(1),
  }),
  fc.record({
    kind: fc.constant("plan-updated" as const),
    callId: fc.constant("a"),
    explanation: fc.constant(null),
    steps: fc.array(
      fc.record({ step: hostileText, status: fc.constantFrom("pending" as const, "completed" as const) }),
      { maxLength: 5 },
    ),
  }),
  fc.constant({ kind: "turn-interrupted" as const }),
);

it("whatever happens, each update is what the protocol allows, of limited length, and without control sequences", () => {
  fc.assert(
    fc.property(fc.array(hostileEvent, { maxLength: 12 }), fc.boolean(), (events, usesTerminals) => {
      const features = featuresOf(usesTerminals ? { _meta: { terminal_output: true } } : undefined);
      for (const update of translate(events, features)) {
        expect(JSON.stringify(update).length).toBeLessThan(8_000_000);
        const { rawInput: _raw, locations: _locations, _meta, ...shown } = update as Record<string, unknown>;
        expect(JSON.stringify(shown)).not.toMatch(/\\u001b|\\u0007|\u009b|\\u0000/);
      }
    }),
    { numRuns: 60 },
  );
});
