import { shellQuote } from "../tools/shell-quote.js";
import type { FileChange, PlanStep } from "../tools/tool.js";
import type { AgentEvent } from "./events.js";

/** One object of `--json`, as `codex exec --json` prints it. */
export type JsonEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

interface OpenCommand {
  id: string;
  command: string;
}

/**
 * Translates a session's events into the objects of `--json`. Items are numbered through, start and end of one sharing the
 * number; what is still open at the end of the turn is completed there.
 */
export class JsonEvents {
  #nextItem = 0;
  readonly #commands = new Map<string, OpenCommand>();
  readonly #patches = new Map<string, { id: string; changes: readonly FileChange[] }>();
  #plan: { id: string; steps: readonly PlanStep[] } | null = null;

  translate(event: AgentEvent): readonly JsonEvent[] {
    switch (event.kind) {
      case "session-started":
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
      case "command-ended":
        return this.#endCommand(event.callId, { output: event.output, exitCode: event.exitCode });
      case "patch-started":
        return [this.#startPatch(event.callId, event.changes)];
      case "patch-ended":
        return this.#endPatch(event.callId, event);
      case "plan-updated":
        return [this.#updatePlan(event.steps)];
      case "reconnecting":
        return [{ type: "error", message: `Reconnecting... ${event.attempt}/${event.maxAttempts}` }];
      case "turn-completed":
        return [
          ...this.#endOpenItems(),
          {
            type: "turn.completed",
            usage: {
              input_tokens: event.usage.inputTokens,
              cached_input_tokens: event.usage.cachedInputTokens,
              output_tokens: event.usage.outputTokens,
              reasoning_output_tokens: event.usage.reasoningOutputTokens,
            },
          },
        ];
      case "turn-failed":
        return [...this.#endOpenItems(), { type: "turn.failed", error: { message: event.error.message } }];
      case "turn-interrupted":
        return this.#endOpenItems();
      case "sandbox-ready":
      case "text-delta":
      case "call-started":
      case "command-output":
      case "call-ended":
        return [];
      default:
        return event satisfies never;
    }
  }

  #item(item: Readonly<Record<string, unknown>>): JsonEvent {
    return { type: "item.completed", item: { id: this.#newId(), ...item } };
  }

  #startCommand(callId: string, command: string): JsonEvent {
    const open = { id: this.#newId(), command };
    this.#commands.set(callId, open);
    return {
      type: "item.started",
      item: commandItem(open, { output: "", exitCode: null, status: "in_progress" }),
    };
  }

  #endCommand(
    callId: string,
    { output, exitCode }: { output: string; exitCode: number | null },
  ): JsonEvent[] {
    const open = this.#commands.get(callId);
    if (open === undefined) return [];
    this.#commands.delete(callId);
    const status = exitCode === 0 ? "completed" : "failed";
    return [{ type: "item.completed", item: commandItem(open, { output, exitCode, status }) }];
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

  /** One list for the whole turn. */
  #updatePlan(steps: readonly PlanStep[]): JsonEvent {
    const type = this.#plan === null ? "item.started" : "item.updated";
    this.#plan = { id: this.#plan?.id ?? this.#newId(), steps };
    return { type, item: planItem(this.#plan) };
  }

  #endOpenItems(): JsonEvent[] {
    const plan = this.#plan;
    this.#plan = null;
    return [
      ...[...this.#commands.keys()].flatMap((callId) =>
        this.#endCommand(callId, { output: "", exitCode: null }),
      ),
      ...[...this.#patches].flatMap(([callId, { changes }]) =>
        this.#endPatch(callId, { changes, success: false }),
      ),
      ...(plan === null ? [] : [{ type: "item.completed", item: planItem(plan) }]),
    ];
  }

  #newId(): string {
    return `item_${this.#nextItem++}`;
  }
}

function commandItem(
  { id, command }: OpenCommand,
  { output, exitCode, status }: { output: string; exitCode: number | null; status: string },
) {
  return { id, type: "command_execution", command, aggregated_output: output, exit_code: exitCode, status };
}

function patchItem({ id, changes }: { id: string; changes: readonly FileChange[] }, status: string) {
  return { id, type: "file_change", changes: changes.map(({ path, kind }) => ({ path, kind })), status };
}

function planItem({ id, steps }: { id: string; steps: readonly PlanStep[] }) {
  const items = steps.map(({ step, status }) => ({ text: step, completed: status === "completed" }));
  return { id, type: "todo_list", items };
}
