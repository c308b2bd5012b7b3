import type { BrigError } from "../errors.js";
import { shellQuote } from "../lib/shell-quote.js";
import { Utf8Stream } from "../lib/utf8.js";
import type { AgentState, FileChange, PlanStep } from "../tools/index.js";
import { wireStatus } from "../tools/index.js";
import { wireCauses, wireDisk, wireEntry } from "./session/write/session-records.js";
import { type CallEvent, type CallPart, CallsSoFar } from "./turn/calls-so-far.js";
import type { AgentEvent } from "./turn/events.js";

/** One object of `--json`, as `codex exec --json` prints it. */
type JsonEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

type JsonItem = Readonly<Record<string, unknown>>;

/** Items that are still open when a turn ends are completed in this order. */
const partKinds = ["command", "patch", "mcp-call", "agent-call"] as const;

/** Output kept for a command that does not end before its turn; any other reports its own output. */
const KEPT_OUTPUT_CHARS = 1024 * 1024;

/**
 * Translates a session's events into the objects of `--json`. Items are numbered across turns; the start and
 * the end of one item have the same number. Items still open at the end of the turn are completed there.
 */
export class JsonEvents {
  #threadId = "";
  #nextItem = 0;
  readonly #calls = new CallsSoFar(() => new TextStart());
  readonly #ids = new WeakMap<CallPart<TextStart>, string>();
  /** The translators of the agents that the session has started. */
  readonly #agents = new Map<string, JsonEvents>();
  #plan: { id: string; steps: readonly PlanStep[] } | null = null;

  translate(event: AgentEvent): readonly JsonEvent[] {
    if ("callId" in event) return this.#translateCall(event);
    switch (event.kind) {
      case "session-started":
        this.#threadId = event.threadId;
        return [{ type: "thread.started", thread_id: event.threadId }];
      case "turn-started":
        return [{ type: "turn.started" }];
      case "message":
        return [this.#item({ type: "agent_message", text: event.text })];
      case "reasoning":
        return event.text === "" ? [] : [this.#item({ type: "reasoning", text: event.text })];
      case "warning":
        return [this.#item({ type: "error", message: event.message })];
      case "reconnecting":
        return [{ type: "error", message: `Reconnecting... ${event.attempt}/${event.maxAttempts}` }];
      case "web-searched": {
        const item = { id: this.#newId(), type: "web_search", query: event.query, action: event.action };
        return [
          { type: "item.started", item },
          { type: "item.completed", item },
        ];
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
          ...this.#endOpenItems({ isCompleted: true }),
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
          ...this.#endOpenItems({ isCompleted: false }),
          { type: "turn.failed", error: failureOf(event.error) },
        ];
      case "turn-interrupted":
        return this.#endOpenItems({ isCompleted: false });
      case "agent-started": {
        const { id, parentId, nickname, role, depth, isForked } = event.agent;
        const isolation = isForked ? "fork" : "shared";
        const place = { agent_id: id, parent_id: parentId, nickname, role, depth, isolation };
        return [{ type: "agent.started", ...place, task: event.task }];
      }
      case "agent-state":
        return [{ type: "agent.status", agent_id: event.agentId, status: wireStatus(event.state) }];
      case "agent-event":
        // Wrapped, so that no reader takes the end of an agent's turn for the end of the session's turn.
        return this.#translatorOf(event.agentId)
          .translate(event.event)
          .map((inner) => ({ type: "agent.event", agent_id: event.agentId, event: inner }));
      case "sandbox-ready":
      case "setup-output":
      case "mcp-servers-starting":
      case "request-started":
      case "request-ended":
      case "text-delta":
      case "compaction-started":
      case "compacted":
        return [];
      default:
        return event satisfies never;
    }
  }

  #translateCall(event: CallEvent): JsonEvent[] {
    const { part } = this.#calls.take(event);
    if (part !== null) return [this.#partItem(part)];
    switch (event.kind) {
      case "command-declined":
        return this.#declineCommand(shellQuote(event.argv), event.reason);
      case "plan-updated":
        return [this.#updatePlan(event.steps)];
      case "restore-point-created": {
        const { callId, snapshot, point, count, changes } = event;
        return [{ type: "restore_point.created", call_id: callId, snapshot, point, count, changes }];
      }
      default:
        return [];
    }
  }

  #item(item: JsonItem): JsonEvent {
    return { type: "item.completed", item: { id: this.#newId(), ...item } };
  }

  /** `isCutOff`: the turn has ended before the part did. */
  #partItem(part: CallPart<TextStart>, { isCutOff = false } = {}): JsonEvent {
    const id = this.#ids.get(part) ?? this.#newId();
    this.#ids.set(part, id);
    const isRunning = part.end === null && !isCutOff;
    const status = isRunning ? "in_progress" : hasSucceeded(part) ? "completed" : "failed";
    const causes = part.kind === "command" ? wireCauses(part.end?.causes) : undefined;
    const item = { id, ...this.#partFields(part, isRunning), status, causes };
    return { type: isRunning ? "item.started" : "item.completed", item };
  }

  #partFields(part: CallPart<TextStart>, isRunning: boolean): JsonItem {
    switch (part.kind) {
      case "command": {
        const { start, end, output } = part;
        const text = end?.output ?? (isRunning ? "" : output.end());
        return commandFields(shellQuote(start.argv), text, end?.exitCode ?? null);
      }
      case "patch":
        return { type: "file_change", changes: sortedChanges((part.end ?? part.start).changes) };
      case "mcp-call": {
        const { server, tool, arguments: args } = part.start;
        const { result = null, error = isRunning ? null : "the call did not end before its turn" } =
          part.end ?? {};
        const wireResult = result && {
          content: result.content,
          structured_content: result.structuredContent ?? null,
        };
        const wireError = error === null ? null : { message: error };
        return { type: "mcp_tool_call", server, tool, arguments: args, result: wireResult, error: wireError };
      }
      case "agent-call": {
        const { tool, targets, prompt } = part.start;
        const states = Object.entries(part.end?.states ?? {});
        return {
          type: "collab_tool_call",
          // Codex reports a resumption as a wait.
          tool: tool === "resume_agent" ? "wait" : tool,
          sender_thread_id: this.#threadId,
          receiver_thread_ids: targets.length > 0 ? targets : states.map(([id]) => id),
          prompt,
          agents_states: Object.fromEntries(states.map(([id, state]) => [id, shownState(state)])),
        };
      }
      default:
        return part satisfies never;
    }
  }

  /** -1 stands for the exit code of a command that never started. */
  #declineCommand(command: string, reason: string): JsonEvent[] {
    const id = this.#newId();
    const started = { id, ...commandFields(command, "", null), status: "in_progress" };
    const declined = { id, ...commandFields(command, reason, -1), status: "declined" };
    return [
      { type: "item.started", item: started },
      { type: "item.completed", item: declined },
    ];
  }

  /** All plans of a turn are one item. */
  #updatePlan(steps: readonly PlanStep[]): JsonEvent {
    const type = this.#plan === null ? "item.started" : "item.updated";
    this.#plan = { id: this.#plan?.id ?? this.#newId(), steps };
    return { type, item: planItem(this.#plan) };
  }

  /** Commands may go on after a completed turn, so their items stay open. Other turns end their commands. */
  #endOpenItems({ isCompleted }: { isCompleted: boolean }): JsonEvent[] {
    const plan = this.#plan;
    this.#plan = null;
    const { known } = this.#calls;
    const open = partKinds
      .filter((kind) => kind !== "command" || !isCompleted)
      .flatMap((kind) => known.flatMap(({ parts }) => parts[kind] ?? []))
      .filter(({ end }) => end === null);
    for (const call of known) if (!isCompleted || call.parts.command?.end !== null) this.#calls.forget(call);
    return [
      ...(plan === null ? [] : [{ type: "item.completed", item: planItem(plan) }]),
      ...open.map((part) => this.#partItem(part, { isCutOff: true })),
    ];
  }

  #translatorOf(agentId: string): JsonEvents {
    const known = this.#agents.get(agentId) ?? new JsonEvents();
    this.#agents.set(agentId, known);
    return known;
  }

  #newId(): string {
    return `item_${this.#nextItem++}`;
  }
}

/** Codex prints the message alone; brig adds a code for programs and a hint for people. */
function failureOf({ message, code, hint, reason, disk }: BrigError): Readonly<Record<string, unknown>> {
  return { message, code, hint, reason, disk: wireDisk(disk) };
}

function hasSucceeded(part: CallPart<TextStart>): boolean {
  switch (part.kind) {
    case "command":
      return part.end?.exitCode === 0;
    case "mcp-call":
      return part.end?.result?.isError === false;
    default:
      return part.end?.success === true;
  }
}

function commandFields(command: string, output: string, exitCode: number | null): JsonItem {
  return { type: "command_execution", command, aggregated_output: output, exit_code: exitCode };
}

/** Sorted by path. If a patch changes a file twice, the last change counts. */
function sortedChanges(changes: readonly FileChange[]): FileChange[] {
  const byPath = new Map(changes.map(({ path, kind }) => [path, { path, kind }]));
  return [...byPath.values()].toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

function planItem({ id, steps }: { id: string; steps: readonly PlanStep[] }): JsonItem {
  const items = steps.map(({ step, status }) => ({ text: step, completed: status === "completed" }));
  return { id, type: "todo_list", items };
}

function shownState(state: AgentState): { status: string; message: string | null } {
  const status = wireStatus(state);
  if (typeof status === "string") return { status, message: null };
  return "completed" in status
    ? { status: "completed", message: status.completed }
    : { status: "errored", message: status.errored };
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
