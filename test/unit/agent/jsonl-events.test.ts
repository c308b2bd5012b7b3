import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { JsonEvents } from "../../../src/agent/jsonl-events.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { BrigError } from "../../../src/errors.js";

const usage = { inputTokens: 10, cachedInputTokens: 4, outputTokens: 3, reasoningOutputTokens: 1 };
const cost = { userMs: 1, systemMs: 1, maxRssBytes: 1 };

function translate(events: readonly AgentEvent[]) {
  const json = new JsonEvents();
  return events.flatMap((event) => json.translate(event));
}

describe("the events of --json", () => {
  it("say which state of the workspace was kept after a call", () => {
    const point = { snapshot: "t", point: 1, count: 1, changes: [{ path: "a", change: "added" as const }] };
    expect(translate([{ kind: "restore-point-created", callId: "c", ...point }])).toEqual([
      { type: "restore_point.created", call_id: "c", ...point },
    ]);
  });

  it("are those of codex exec, items numbered through and a command's start and end sharing a number", () => {
    expect(
      translate([
        { kind: "session-started", threadId: "t-1", sessionFile: null },
        { kind: "turn-started", prompt: "go" },
        { kind: "sandbox-ready", sandboxId: "s", startMs: 1, readyAt: 2 },
        { kind: "reasoning", text: "hm" },
        { kind: "reasoning", text: "" },
        { kind: "call-started", callId: "c", name: "shell", input: "{}" },
        { kind: "command-started", callId: "c", argv: ["bash", "-lc", "ls -a"], cwd: "/" },
        { kind: "command-output", callId: "c", chunk: Buffer.from("x") },
        { kind: "command-ended", callId: "c", exitCode: 2, output: "x", durationMs: 1, usage: cost },
        { kind: "call-ended", callId: "c", name: "shell", content: "", success: false, durationMs: 1 },
        { kind: "text-delta", text: "do" },
        { kind: "message", text: "done" },
        { kind: "turn-completed", usage },
      ]),
    ).toEqual([
      { type: "thread.started", thread_id: "t-1" },
      { type: "turn.started" },
      { type: "item.completed", item: { id: "item_0", type: "reasoning", text: "hm" } },
      {
        type: "item.started",
        item: {
          id: "item_1",
          type: "command_execution",
          command: "bash -lc 'ls -a'",
          aggregated_output: "",
          exit_code: null,
          status: "in_progress",
        },
      },
      {
        type: "item.completed",
        item: {
          id: "item_1",
          type: "command_execution",
          command: "bash -lc 'ls -a'",
          aggregated_output: "x",
          exit_code: 2,
          status: "failed",
        },
      },
      { type: "item.completed", item: { id: "item_2", type: "agent_message", text: "done" } },
      {
        type: "turn.completed",
        usage: {
          input_tokens: 10,
          cached_input_tokens: 4,
          cache_write_input_tokens: 0,
          output_tokens: 3,
          reasoning_output_tokens: 1,
        },
      },
    ]);
  });

  it("tell of a call of an MCP server from its start to its result or error", () => {
    const start = (callId: string): AgentEvent => ({
      kind: "mcp-call-started",
      callId,
      server: "docs",
      tool: "search",
      arguments: { q: "x" },
    });
    const content = [{ type: "text", text: "found" }];
    const end = (callId: string, isError: boolean): AgentEvent => ({
      kind: "mcp-call-ended",
      callId,
      result: { content, structuredContent: undefined, isError },
      error: null,
      durationMs: 1,
    });
    const events = translate([
      start("done"),
      { kind: "mcp-call-progress", callId: "done", progress: 1, total: null, message: "half" },
      end("done", false),
      start("refused"),
      end("refused", true),
      start("lost"),
      { kind: "mcp-call-ended", callId: "lost", result: null, error: "it ended", durationMs: 1 },
      start("open"),
      { kind: "turn-completed", usage },
      end("open", false),
    ]);
    const call = { type: "mcp_tool_call", server: "docs", tool: "search", arguments: { q: "x" } };
    const open = { ...call, result: null, error: null, status: "in_progress" };
    const result = { content, structured_content: null };
    const left = { message: "the call did not end before its turn" };
    expect(events.slice(0, -1)).toEqual([
      { type: "item.started", item: { id: "item_0", ...open } },
      { type: "item.completed", item: { id: "item_0", ...open, result, status: "completed" } },
      { type: "item.started", item: { id: "item_1", ...open } },
      { type: "item.completed", item: { id: "item_1", ...open, result, status: "failed" } },
      { type: "item.started", item: { id: "item_2", ...open } },
      {
        type: "item.completed",
        item: { id: "item_2", ...open, error: { message: "it ended" }, status: "failed" },
      },
      { type: "item.started", item: { id: "item_3", ...open } },
      { type: "item.completed", item: { id: "item_3", ...open, error: left, status: "failed" } },
    ]);
    expect(events.at(-1)).toMatchObject({ type: "turn.completed" });
  });

  it("tell of reconnecting, of warnings and of a failed turn", () => {
    expect(
      translate([
        { kind: "reconnecting", attempt: 1, maxAttempts: 5, delayMs: 200, reason: "closed" },
        { kind: "warning", message: "careful" },
        { kind: "turn-failed", error: new BrigError("no", { code: "model.failed", hint: "wait" }) },
      ]),
    ).toEqual([
      { type: "error", message: "Reconnecting... 1/5" },
      { type: "item.completed", item: { id: "item_0", type: "error", message: "careful" } },
      { type: "error", message: "no", code: "model.failed", hint: "wait" },
      { type: "turn.failed", error: { message: "no", code: "model.failed", hint: "wait" } },
    ]);
  });

  it("complete a command that is still running when the turn is interrupted, and say no more", () => {
    const events = translate([
      { kind: "command-started", callId: "c", argv: ["sleep", "9"], cwd: "/" },
      { kind: "turn-interrupted" },
      { kind: "command-ended", callId: "c", exitCode: 137, output: "", durationMs: 1, usage: cost },
    ]);
    expect(events).toMatchObject([
      { type: "item.started" },
      { type: "item.completed", item: { exit_code: null, status: "failed" } },
    ]);
  });

  it("leave the item of a command that outlives its turn open, until it ends", () => {
    const events = translate([
      { kind: "command-started", callId: "c", argv: ["serve"], cwd: "/" },
      { kind: "command-output", callId: "c", chunk: Buffer.from("listening") },
      { kind: "turn-completed", usage: { ...usage, cacheWriteInputTokens: 7 } },
      { kind: "command-ended", callId: "c", exitCode: 0, output: "listening", durationMs: 1, usage: cost },
    ]);
    expect(events).toMatchObject([
      { type: "item.started" },
      { type: "turn.completed", usage: { cache_write_input_tokens: 7 } },
      { type: "item.completed", item: { id: "item_0", aggregated_output: "listening", status: "completed" } },
    ]);
  });

  it("name the files of a patch in the order of their paths, each once", () => {
    const change = (path: string, kind: "add" | "update" | "delete") => ({ path, kind });
    const changes = [
      change("/w/z", "add"),
      change("/w/b", "delete"),
      change("/w/é", "add"),
      change("/w/z", "update"),
    ];
    const [started] = translate([{ kind: "patch-started", callId: "c", changes, patch: "" }]);
    expect(started).toMatchObject({
      item: { changes: [change("/w/b", "delete"), change("/w/z", "update"), change("/w/é", "add")] },
    });
  });

  it("tell a command that was not let start as declined, with the reason", () => {
    const argv = ["rm", "-rf", "a b"];
    const item = { id: "item_0", type: "command_execution", command: "rm -rf 'a b'" };
    const started = { aggregated_output: "", exit_code: null, status: "in_progress" };
    const declined = { aggregated_output: "no", exit_code: -1, status: "declined" };
    expect(translate([{ kind: "command-declined", callId: "c", argv, cwd: "/", reason: "no" }])).toEqual([
      { type: "item.started", item: { ...item, ...started } },
      { type: "item.completed", item: { ...item, ...declined } },
    ]);
  });

  it("tell a search on the web with what was looked for", () => {
    const action = { type: "search", query: "weather" };
    const item = { id: "item_0", type: "web_search", query: "weather", action };
    expect(translate([{ kind: "web-searched", query: "weather", action }])).toEqual([
      { type: "item.started", item },
      { type: "item.completed", item },
    ]);
  });

  it("tell a patch as a file change, and one that never ended as failed", () => {
    const changes = [{ path: "/w/a", kind: "add" as const }];
    const item = { type: "file_change", changes };
    expect(
      translate([
        { kind: "patch-started", callId: "c", changes, patch: "" },
        { kind: "patch-ended", callId: "c", changes, success: true },
        { kind: "patch-started", callId: "d", changes, patch: "" },
        { kind: "turn-interrupted" },
      ]),
    ).toEqual([
      { type: "item.started", item: { id: "item_0", ...item, status: "in_progress" } },
      { type: "item.completed", item: { id: "item_0", ...item, status: "completed" } },
      { type: "item.started", item: { id: "item_1", ...item, status: "in_progress" } },
      { type: "item.completed", item: { id: "item_1", ...item, status: "failed" } },
    ]);
  });

  it("tell the plan as one list that grows and is completed with the turn", () => {
    const plan = (status: "pending" | "completed"): AgentEvent => ({
      kind: "plan-updated",
      callId: "c",
      explanation: null,
      steps: [{ step: "look", status }],
    });
    const list = (completed: boolean) => ({
      item: { id: "item_0", type: "todo_list", items: [{ text: "look", completed }] },
    });
    const [first, second, third] = translate([
      plan("pending"),
      plan("completed"),
      { kind: "turn-interrupted" },
    ]);
    expect([first, second, third]).toEqual([
      { type: "item.started", ...list(false) },
      { type: "item.updated", ...list(true) },
      { type: "item.completed", ...list(true) },
    ]);
  });

  it("are, of the same session, what Codex 0.169 printed, but for what is named here", () => {
    const codex = readFileSync(
      new URL("../../fixtures/rollouts/codex-0.169-events.jsonl", import.meta.url),
      "utf8",
    )
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const bash = (script: string) => ["/bin/bash", "-lc", script];
    const command = (callId: string, script: string, [exitCode, output]: [number, string]): AgentEvent[] => [
      { kind: "command-started", callId, argv: bash(script), cwd: "/" },
      { kind: "command-ended", callId, exitCode, output, durationMs: 1, usage: cost },
    ];
    const action = { type: "search", query: "weather" };
    const total = { inputTokens: 600, cachedInputTokens: 240, outputTokens: 120, reasoningOutputTokens: 30 };
    const brig = translate([
      { kind: "session-started", threadId: codex[0].thread_id, sessionFile: null },
      { kind: "turn-started", prompt: "go" },
      { kind: "reasoning", text: "**Thinking**\nhm" },
      { kind: "message", text: "I look." },
      ...command("c1", "echo hi; exit 3", [3, "hi\n"]),
      { kind: "web-searched", query: "weather", action },
      ...command("c9", "true", [0, ""]),
      ...command("c2", "cat made.txt", [0, "hello\n"]),
      { kind: "command-started", callId: "l1", argv: bash("sleep 60"), cwd: "/" },
      { kind: "message", text: "done" },
      { kind: "turn-completed", usage: total },
    ]);
    const first = codex[2].item.id.slice("item_".length);
    const comparable = codex.map((event) => {
      const { item } = event;
      // Codex counts its own warning first, and writes a search's id twice.
      if (item !== undefined)
        item.id = `item_${item.type === "web_search" ? 3 : item.id.slice("item_".length) - first}`;
      return event;
    });
    expect(brig).toEqual(comparable);
  });
});
