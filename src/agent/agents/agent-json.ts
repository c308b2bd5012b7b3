import type { AgentCallEnd, AgentCallStart, AgentState } from "../../tools/index.js";
import { wireStatus } from "../../tools/index.js";
import type { AgentEvent } from "../turn/events.js";
import type { JsonEvent } from "../turn/json-event.js";
import type { agentEventKinds } from "./agent-event-kinds.js";

/** Translates the events of one session. */
interface Translator {
  translate(event: AgentEvent): readonly JsonEvent[];
}

/**
 * Translates events about agents into objects of `--json`. Calls of the agent tools are reported as Codex
 * does it; the other objects are brig's own.
 */
export class AgentJson {
  readonly #newId: () => string;
  readonly #newTranslator: () => Translator;
  readonly #calls = new Map<string, Readonly<Record<string, unknown>> & { start: AgentCallStart }>();
  readonly #agents = new Map<string, Translator>();
  /** The id of the session whose model makes the calls. */
  threadId = "";

  constructor(parts: { newId: () => string; newTranslator: () => Translator }) {
    this.#newId = parts.newId;
    this.#newTranslator = parts.newTranslator;
  }

  translate(event: AgentEvent & { kind: (typeof agentEventKinds)[number] }): JsonEvent[] {
    switch (event.kind) {
      case "agent-call-started":
        return [this.#startCall(event)];
      case "agent-call-ended":
        return this.#endCall(event.callId, event);
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
      default:
        return event satisfies never;
    }
  }

  /** Ends the items of calls that did not end before their turn. */
  endCalls(): JsonEvent[] {
    return [...this.#calls].flatMap(([callId, { start }]) =>
      this.#endCall(callId, { ...start, states: {}, success: false }),
    );
  }

  #startCall({ callId, ...start }: AgentCallStart & { callId: string }): JsonEvent {
    const open = {
      id: this.#newId(),
      type: "collab_tool_call",
      // Codex reports a resumption as a wait.
      tool: start.tool === "resume_agent" ? "wait" : start.tool,
      sender_thread_id: this.threadId,
      receiver_thread_ids: start.targets,
      prompt: start.prompt,
    };
    this.#calls.set(callId, { ...open, start });
    return { type: "item.started", item: { ...open, agents_states: {}, status: "in_progress" } };
  }

  #endCall(callId: string, { states, success }: AgentCallEnd): JsonEvent[] {
    const open = this.#calls.get(callId);
    if (open === undefined) return [];
    this.#calls.delete(callId);
    const { start, ...item } = open;
    const receivers = start.targets.length > 0 ? start.targets : Object.keys(states);
    return [
      {
        type: "item.completed",
        item: {
          ...item,
          receiver_thread_ids: receivers,
          agents_states: Object.fromEntries(Object.entries(states).map(([id, state]) => [id, shown(state)])),
          status: success ? "completed" : "failed",
        },
      },
    ];
  }

  #translatorOf(agentId: string): Translator {
    const known = this.#agents.get(agentId) ?? this.#newTranslator();
    this.#agents.set(agentId, known);
    return known;
  }
}

function shown(state: AgentState): { status: string; message: string | null } {
  const status = wireStatus(state);
  if (typeof status === "string") return { status, message: null };
  return "completed" in status
    ? { status: "completed", message: status.completed }
    : { status: "errored", message: status.errored };
}
