import type { BrigError } from "../errors.js";
import { Utf8Stream } from "../lib/utf8.js";
import type { FileChange, McpCallEnd, McpCallStart, PlanStep } from "../tools/index.js";
import { shellQuote } from "../tools/index.js";
import { AgentJson } from "./agents/agent-json.js";
import { wireCauses, wireDisk } from "./session/write/cause-records.js";
import { wireEntry } from "./session/write/session-records.js";
import type { AgentEvent } from "./turn/events.js";
import type { JsonEvent } from "./turn/json-event.js";
import type { WebSearch } from "./turn/web-search-event.js";

type WireCauses = ReturnType<typeof wireCauses>;

interface OpenCommand {
  id: string;
  command: string;
  /** Used if the turn ends before the command does. */
  output: TextStart;
}

/** Output kept for a command that does not end before its turn; any other reports its own output. */
const KEPT_OUTPUT_CHARS = 1024 * 1024;

/**
 * Translates a session's events into the objects of `--json`. Items are numbered across turns; the start and
 * the end of one item have the same number. Items still open at the end of the turn are completed there.
 */
export class JsonEvents {
  #nextItem = 0;
  readonly #commands = new Map<string, OpenCommand>();
  readonly #patches = new Map<string, { id: string; changes: readonly FileChange[] }>();
  readonly #mcpCalls = new Map<string, Readonly<Record<string, unknown>>>();
  readonly #agents = new AgentJson({
    newId: () => this.#newId(),
    newTranslator: () => new JsonEvents(),
  });
  #plan: { id: string; steps: readonly PlanStep[] } | null = null;

  translate(event: AgentEvent): readonly JsonEvent[] {
    switch (event.kind) {
      case "session-started":
        this.#agents.threadId = event.threadId;
        return [{ type: "thread.started", thread_id: event.threadId }];
      case "turn-started":
        return [{ type: "turn.started" }];
      case "message":
        return [this.#item({ type: "agent_message", text: event.text })];
      case "reasoning":
        return event.text === "" ? [] : [this.#item({ type: "reasoning", text: event.text })];
      case "warning":
        return [this.#item({ type: "error", message: event.message })];
      case "command-started":
        return [this.#startCommand(event.callId, shellQuote(event.argv))];
      case "command-output":
        this.#commands.get(event.callId)?.output.push(event.chunk);
        return [];
      case "command-ended":
        return this.#endCommand(event.callId, {
          output: event.output,
          exitCode: event.exitCode,
          causes: wireCauses(event.causes),
          status: event.exitCode === 0 ? "completed" : "failed",
        });
      case "command-declined":
        return this.#declineCommand(event.argv, event.reason);
      case "patch-started":
        return [this.#startPatch(event.callId, event.changes)];
      case "patch-ended":
        return this.#endPatch(event.callId, event);
      case "mcp-call-started":
        return [this.#startMcpCall(event)];
      case "mcp-call-ended":
        return this.#endMcpCall(event.callId, event);
      case "plan-updated":
        return [this.#updatePlan(event.steps)];
      case "reconnecting":
        return [{ type: "error", message: `Reconnecting... ${event.attempt}/${event.maxAttempts}` }];
      case "web-searched":
        return this.#searchWeb(event);
      case "restore-point-created": {
        const { callId, snapshot, point, count, changes } = event;
        return [{ type: "restore_point.created", call_id: callId, snapshot, point, count, changes }];
      }
      case "egress":
        return [{ type: "egress.attempted", ...wireEntry(event.entry) }];
      case "setup-started":
        return [{ type: "setup.started", command: event.argv, network: event.network }];
      case "setup-ended":
        return [{ type: "setup.ended", exit_code: event.exitCode, duration_ms: event.durationMs }];
      case "receipt":
        return [{ type: "session.receipt", receipt: event.receipt }];
      case "turn-completed":
        return [
          ...this.#endOpenItems("completed"),
          {
            type: "turn.completed",
            usage: {
              input_tokens: event.usage.inputTokens,
              cached_input_tokens: event.usage.cachedInputTokens,
              cache_write_input_tokens: event.usage.cacheWriteInputTokens ?? 0,
              output_tokens: event.usage.outputTokens,
              reasoning_output_tokens: event.usage.reasoningOutputTokens,
            },
          },
        ];
      case "turn-failed":
        return [
          { type: "error", ...failureOf(event.error) },
          ...this.#endOpenItems("failed"),
          { type: "turn.failed", error: failureOf(event.error) },
        ];
      case "turn-interrupted":
        return this.#endOpenItems("failed");
      case "agent-call-started":
      case "agent-call-ended":
      case "agent-started":
      case "agent-state":
      case "agent-event":
        return this.#agents.translate(event);
      case "sandbox-ready":
      case "setup-output":
      case "mcp-servers-starting":
      case "mcp-call-progress":
      case "mcp-question-asked":
      case "mcp-question-answered":
      case "text-delta":
      case "call-started":
      case "approval-requested":
      case "approval-answered":
      case "call-ended":
      case "compaction-started":
      case "compacted":
        return [];
      default:
        return event satisfies never;
    }
  }

  #item(item: Readonly<Record<string, unknown>>): JsonEvent {
    return { type: "item.completed", item: { id: this.#newId(), ...item } };
  }

  #startCommand(callId: string, command: string): JsonEvent {
    const open = { id: this.#newId(), command, output: new TextStart() };
    this.#commands.set(callId, open);
    return {
      type: "item.started",
      item: commandItem(open, { output: "", exitCode: null, status: "in_progress" }),
    };
  }

  #endCommand(
    callId: string,
    end: { output: string; exitCode: number | null; status: "completed" | "failed"; causes?: WireCauses },
  ): JsonEvent[] {
    const open = this.#commands.get(callId);
    if (open === undefined) return [];
    this.#commands.delete(callId);
    return [{ type: "item.completed", item: commandItem(open, end) }];
  }

  #searchWeb({ query, action }: WebSearch): JsonEvent[] {
    const item = { id: this.#newId(), type: "web_search", query, action };
    return [
      { type: "item.started", item },
      { type: "item.completed", item },
    ];
  }

  /** -1 stands for the exit code of a command that never started. */
  #declineCommand(argv: readonly string[], reason: string): JsonEvent[] {
    const open = { id: this.#newId(), command: shellQuote(argv) };
    const started = commandItem(open, { output: "", exitCode: null, status: "in_progress" });
    const declined = commandItem(open, { output: reason, exitCode: -1, status: "declined" });
    return [
      { type: "item.started", item: started },
      { type: "item.completed", item: declined },
    ];
  }

  #startPatch(callId: string, changes: readonly FileChange[]): JsonEvent {
    const open = { id: this.#newId(), changes };
    this.#patches.set(callId, open);
    return { type: "item.started", item: patchItem(open, "in_progress") };
  }

  #endPatch(
    callId: string,
    { changes, success }: { changes: readonly FileChange[]; success: boolean },
  ): JsonEvent[] {
    const open = this.#patches.get(callId);
    if (open === undefined) return [];
    this.#patches.delete(callId);
    const status = success ? "completed" : "failed";
    return [{ type: "item.completed", item: patchItem({ ...open, changes }, status) }];
  }

  #startMcpCall({ callId, server, tool, arguments: args }: McpCallStart & { callId: string }): JsonEvent {
    const open = { id: this.#newId(), type: "mcp_tool_call", server, tool, arguments: args };
    this.#mcpCalls.set(callId, open);
    return { type: "item.started", item: { ...open, result: null, error: null, status: "in_progress" } };
  }

  #endMcpCall(callId: string, { result, error }: Pick<McpCallEnd, "result" | "error">): JsonEvent[] {
    const open = this.#mcpCalls.get(callId);
    if (open === undefined) return [];
    this.#mcpCalls.delete(callId);
    const wireResult = result && {
      content: result.content,
      structured_content: result.structuredContent ?? null,
    };
    const status = result?.isError === false ? "completed" : "failed";
    const wireError = error === null ? null : { message: error };
    return [{ type: "item.completed", item: { ...open, result: wireResult, error: wireError, status } }];
  }

  /** All plans of a turn are one item. */
  #updatePlan(steps: readonly PlanStep[]): JsonEvent {
    const type = this.#plan === null ? "item.started" : "item.updated";
    this.#plan = { id: this.#plan?.id ?? this.#newId(), steps };
    return { type, item: planItem(this.#plan) };
  }

  /** Commands may go on after a completed turn, so their items stay open. Other turns end their commands. */
  #endOpenItems(status: "completed" | "failed"): JsonEvent[] {
    const plan = this.#plan;
    this.#plan = null;
    return [
      ...(plan === null ? [] : [{ type: "item.completed", item: planItem(plan) }]),
      ...(status === "completed" ? [] : [...this.#commands]).flatMap(([callId, { output }]) =>
        this.#endCommand(callId, { output: output.end(), exitCode: null, status }),
      ),
      ...[...this.#patches].flatMap(([callId, { changes }]) =>
        this.#endPatch(callId, { changes, success: false }),
      ),
      ...[...this.#mcpCalls.keys()].flatMap((callId) =>
        this.#endMcpCall(callId, { result: null, error: "the call did not end before its turn" }),
      ),
      ...this.#agents.endCalls(),
    ];
  }

  #newId(): string {
    return `item_${this.#nextItem++}`;
  }
}

/** Codex prints the message alone; brig adds a code for programs and a hint for people. */
function failureOf({ message, code, hint, reason, disk }: BrigError): Readonly<Record<string, unknown>> {
  return { message, code, hint, reason, disk: wireDisk(disk) };
}

function commandItem(
  { id, command }: Pick<OpenCommand, "id" | "command">,
  {
    output,
    exitCode,
    status,
    causes,
  }: { output: string; exitCode: number | null; status: string; causes?: WireCauses },
) {
  const item = { id, type: "command_execution", command, aggregated_output: output, exit_code: exitCode };
  return { ...item, status, causes };
}

/** Changes are sorted by path. If a patch changes a file twice, the last change counts. */
function patchItem({ id, changes }: { id: string; changes: readonly FileChange[] }, status: string) {
  const byPath = new Map(changes.map(({ path, kind }) => [path, { path, kind }]));
  const sorted = [...byPath.values()].toSorted((a, b) =>
    Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)),
  );
  return { id, type: "file_change", changes: sorted, status };
}

function planItem({ id, steps }: { id: string; steps: readonly PlanStep[] }) {
  const items = steps.map(({ step, status }) => ({ text: step, completed: status === "completed" }));
  return { id, type: "todo_list", items };
}

class TextStart {
  readonly #decoder = new Utf8Stream();
  #text = "";

  push(chunk: Uint8Array): void {
    if (this.#text.length < KEPT_OUTPUT_CHARS) this.#text += this.#decoder.push(chunk);
  }

  end(): string {
    return (this.#text + this.#decoder.end()).slice(0, KEPT_OUTPUT_CHARS);
  }
}
