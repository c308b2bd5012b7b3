import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AgentEvent } from "../../../../../src/agent/turn/events.js";
import { BrigError } from "../../../../../src/errors.js";
import { featuresOf } from "../../../../../src/services/acp/client-link.js";
import { EventUpdates } from "../../../../../src/services/acp/updates/event-updates.js";
import { expectExact, schema } from "../../../../support/acp-schema.js";

const plain = featuresOf(undefined);
const terminals = featuresOf({ _meta: { terminal_output: true } });
const started: AgentEvent = {
  kind: "setup-started",
  argv: ["bash", "-c", "npm ci"],
  network: "allowlist:@npm",
};
const output = (text: string): AgentEvent => ({ kind: "setup-output", chunk: Buffer.from(text) });
const ended = (exitCode: number | null, text: string | null): AgentEvent => ({
  kind: "setup-ended",
  exitCode,
  durationMs: exitCode === null ? null : 1,
  output: text,
});

function translate(events: readonly AgentEvent[], features = plain): SessionUpdate[] {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const sent: SessionUpdate[] = [];
  const updates = new EventUpdates({ features, cwd: "/w", send: (update) => void sent.push(update) });
  onTestFinished(() => updates.close());
  for (const event of events) {
    updates.take(event);
    vi.advanceTimersByTime(1000);
  }
  for (const update of sent) expectExact(schema.zSessionNotification, { sessionId: "s", update });
  return sent;
}

const shown = (text: string) => [
  { type: "content", content: { type: "text", text: `\`\`\`\n${text}\n\`\`\`` } },
];

describe("a set-up", () => {
  it("is a call that runs, shows its output meanwhile, and is completed", () => {
    const sent = translate([started, output("add\x1b[31med 3 packages\n"), ended(0, "added 3 packages\n")]);
    expect(sent).toMatchObject([
      {
        sessionUpdate: "tool_call",
        title: "Set up: npm ci",
        kind: "execute",
        status: "in_progress",
        rawInput: { command: "npm ci", network: "allowlist:@npm" },
      },
      { sessionUpdate: "tool_call_update", content: shown("added 3 packages") },
      { status: "completed", content: shown("added 3 packages"), rawOutput: { exit_code: 0 } },
    ]);
    const ids = sent.map((update) => ("toolCallId" in update ? update.toolCallId : null));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).not.toBeNull();
  });

  it("that fails is a failed call", () => {
    const sent = translate([started, ended(4, "no such package\n")]);
    expect(sent.slice(1)).toMatchObject([
      { status: "failed", content: shown("no such package"), rawOutput: { exit_code: 4 } },
    ]);
  });

  it("that was interrupted, or whose turn ended before it, is a failed call, and only once", () => {
    const error = new BrigError("the set-up was stopped", { code: "aborted" });
    for (const end of [ended(null, null), { kind: "turn-failed", error } as const]) {
      const sent = translate([started, end, { kind: "turn-interrupted" }, output("late"), ended(0, "late")]);
      expect(sent.slice(1)).toMatchObject([{ sessionUpdate: "tool_call_update", status: "failed" }]);
      expect(sent).toHaveLength(2);
    }
  });

  it("is drawn in a terminal where the client has one", () => {
    const sent = translate([started, output("one\n"), ended(3, "one\n")], terminals);
    const id = sent[0] && "toolCallId" in sent[0] ? sent[0].toolCallId : "";
    expect(sent).toMatchObject([
      { content: [{ type: "terminal", terminalId: id }], _meta: { terminal_info: { cwd: "/w" } } },
      { _meta: { terminal_output: { terminal_id: id, data: "one\n" } } },
      { status: "failed", _meta: { terminal_exit: { terminal_id: id, exit_code: 3 } } },
    ]);
  });

  it("that is tried again is another call", () => {
    const sent = translate([started, ended(1, ""), started, ended(0, "")]);
    const ids = sent.flatMap((update) => (update.sessionUpdate === "tool_call" ? [update.toolCallId] : []));
    expect(new Set(ids).size).toBe(2);
  });
});
