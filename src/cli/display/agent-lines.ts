import type { AgentEvent, AgentPlacement } from "../../agent/index.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { clipped } from "../../sandbox/index.js";
import type { AgentState } from "../../tools/index.js";
import { callTitle, commandText } from "./call-text.js";

const SHOWN_CHARS = 160;

/** One line about an agent. Its texts are safe for a terminal. */
export interface AgentLine {
  id: string;
  parentId: string;
  /** The nickname, and the role if it has one. */
  name: string;
  /** 1 for an agent that the session itself has started. */
  depth: number;
  state: AgentState["kind"];
  /** The agent's current activity, or its last one. */
  activity: string;
  /** Milliseconds since the epoch, of the start of its turn. */
  since: number;
}

/** The effect of an event on the line of an agent. */
export interface AgentLineChange {
  /** The line after the event. The line of a closed agent is not shown any more. */
  line: AgentLine;
  /**
   * A text to print where a line that is already printed cannot be changed; null if the event is not worth a
   * line.
   */
  note: string | null;
  /** Whether the agent is done, or cannot go on. */
  isEnd: boolean;
}

export type EventOfAgent = AgentEvent & { kind: "agent-started" | "agent-state" | "agent-event" };

/** The lines of a session's agents. */
export class AgentLines {
  readonly #lines = new Map<string, AgentLine>();

  /** `at`: milliseconds since the epoch. */
  take(event: EventOfAgent, at: number): AgentLineChange | null {
    if (event.kind === "agent-started") return this.#start(event.agent, event.task, at);
    const line = this.#lines.get(event.agentId);
    if (line === undefined) return null;
    if (event.kind === "agent-state") return this.#changeState(line, event.state, at);
    const activity = activityOf(event.event);
    return activity === null ? null : this.#change({ ...line, activity }, { note: activity });
  }

  #start(agent: AgentPlacement, task: string | null, at: number): AgentLineChange {
    const { id, parentId, depth } = agent;
    const activity = task === null ? "resumed" : firstLine(task);
    const line = {
      id,
      parentId,
      depth,
      name: agentName(agent),
      state: "starting",
      activity,
      since: at,
    } as const;
    return this.#change(line, { note: task === null ? activity : `started: ${activity}` });
  }

  #changeState(line: AgentLine, state: AgentState, at: number): AgentLineChange {
    if (state.kind === "running")
      return this.#change({ ...line, state: state.kind, since: at }, { note: null });
    if (state.kind === "closed") {
      this.#lines.delete(line.id);
      return { line: { ...line, state: "closed" }, note: null, isEnd: false };
    }
    const activity = endText(state) ?? line.activity;
    const isEnd = state.kind === "completed" || state.kind === "failed";
    return this.#change({ ...line, state: state.kind, activity }, { note: endText(state), isEnd });
  }

  #change(
    line: AgentLine,
    { note, isEnd = false }: { note: string | null; isEnd?: boolean },
  ): AgentLineChange {
    this.#lines.set(line.id, line);
    return { line, note, isEnd };
  }
}

function agentName({ nickname, role }: { nickname: string; role: string | null }): string {
  return clipped(neutraliseLine(role === null ? nickname : `${nickname} (${role})`), 60);
}

/** Sorted so that each agent follows the one that has started it. */
export function inTreeOrder(lines: readonly AgentLine[]): AgentLine[] {
  const known = new Set(lines.map(({ id }) => id));
  const below = (parentId: string): AgentLine[] =>
    lines.filter((line) => line.parentId === parentId).flatMap((line) => [line, ...below(line.id)]);
  return lines.filter(({ parentId }) => !known.has(parentId)).flatMap((line) => [line, ...below(line.id)]);
}

function activityOf(event: AgentEvent): string | null {
  switch (event.kind) {
    case "command-started":
    case "command-declined":
      return clipped(`$ ${firstLine(commandText(event.argv))}`, SHOWN_CHARS);
    case "patch-started":
      return clipped(
        neutraliseLine(`patches ${event.changes.map(({ path }) => path).join(", ")}`),
        SHOWN_CHARS,
      );
    case "mcp-call-started":
      return clipped(neutraliseLine(`calls ${event.tool} of ${event.server}`), SHOWN_CHARS);
    case "agent-call-started":
      return callTitle(event.tool, "{}");
    case "approval-requested":
      return "asks for approval";
    case "reconnecting":
      return `reconnecting (${event.attempt}/${event.maxAttempts})`;
    case "compaction-started":
      return "summarises its conversation";
    case "warning":
      return firstLine(`warning: ${event.message}`);
    default:
      return null;
  }
}

function endText(state: AgentState): string | null {
  switch (state.kind) {
    case "completed":
      return state.message === null ? "done" : `done: ${firstLine(state.message)}`;
    case "failed":
      return `failed: ${firstLine(state.message)}`;
    case "interrupted":
      return "interrupted";
    default:
      return null;
  }
}

function firstLine(text: string): string {
  const [line = "", ...more] = text.trim().split("\n");
  return clipped(neutraliseLine(more.length > 0 ? `${line} …` : line), SHOWN_CHARS);
}
