import type { AgentEvent, CallEvent } from "../../../agent/index.js";
import { CallsSoFar } from "../../../agent/index.js";
import { receiptText } from "../../../command/index.js";
import { NeutralStream, NeutralText, neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { FileChange } from "../../../tools/index.js";
import { type AgentLine, type AgentLineChange, AgentLines } from "../../display/agent-lines.js";
import { callTitle, commandText, endText, setupText } from "../../display/call-text.js";
import { progressText, startingText } from "../../display/mcp-text.js";

/** An event of a session, as a person is shown it. Its texts are safe for a terminal. */
export type ViewEvent =
  | { kind: "turn-started"; at: number }
  | { kind: "text-delta"; text: string }
  | { kind: "message"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "call-started"; callId: string; name: string; title: string; at: number }
  | { kind: "call-progress"; callId: string; text: string }
  | { kind: "command-started"; callId: string; script: string; at: number }
  | { kind: "command-declined"; callId: string; script: string }
  | { kind: "command-output"; callId: string; text: string }
  | { kind: "command-ended"; callId: string; exitCode: number; durationMs: number }
  | Extract<AgentEvent, { kind: "call-ended" | "patch-started" | "patch-ended" | "plan-updated" }>
  /** The new line of an agent, or null if it was closed. `note` is shown when no message is arriving. */
  | {
      kind: "agent-line";
      agentId: string;
      line: AgentLine | null;
      note: (ViewEvent & { kind: "notice" }) | null;
    }
  | { kind: "compaction-started" }
  | { kind: "notice"; tone: NoticeTone; text: string; hint?: string | undefined }
  | { kind: "turn-ended"; how: "completed" | "failed" | "interrupted" };

export type NoticeTone = "quiet" | "warning" | "failure";

/**
 * Turns the events of an agent into events for the screen. Each command's output goes through a stream of its
 * own, so that a control sequence that is split between two chunks is neutralised too.
 */
export class EventNeutraliser {
  readonly #calls = new CallsSoFar(() => new NeutralOutput());
  readonly #agents = new AgentLines();
  readonly #now: () => number;
  readonly #cwd: string | null;
  #message = new NeutralText();

  /** Files below `cwd` are shown with relative paths. Default: all paths are absolute. */
  constructor(now: () => number, { cwd = null }: { cwd?: string | null } = {}) {
    this.#now = now;
    this.#cwd = cwd;
  }

  translate(event: AgentEvent): ViewEvent[] {
    if ("callId" in event) return this.#translateCall(event);
    switch (event.kind) {
      case "session-started":
      case "sandbox-ready":
      case "setup-output":
      case "request-started":
      case "request-ended":
      // The output of the command says what was refused.
      case "egress":
        return [];
      case "agent-started":
      case "agent-state":
      case "agent-event":
        return agentLine(this.#agents.take(event, this.#now()));
      case "setup-started":
      case "setup-ended":
        return [{ kind: "notice", tone: "quiet", text: setupText(event) }];
      case "mcp-servers-starting":
        return [{ kind: "notice", tone: "quiet", text: startingText(event.servers) }];
      case "turn-started":
        this.#message = new NeutralText();
        return [{ kind: "turn-started", at: this.#now() }];
      case "text-delta":
        return [{ kind: "text-delta", text: this.#message.push(event.text) }];
      case "message":
        this.#message = new NeutralText();
        return [{ kind: "message", text: neutralise(event.text) }];
      case "reasoning":
        return [{ kind: "reasoning", text: neutralise(event.text) }];
      case "reconnecting":
        this.#message = new NeutralText();
        return [{ kind: "notice", tone: "warning", text: reconnectText(event) }];
      case "receipt":
        return [{ kind: "notice", tone: "warning", text: receiptText(event.receipt).trimEnd() }];
      case "compaction-started":
        return [{ kind: "compaction-started" }];
      case "compacted":
        return [{ kind: "notice", tone: "quiet", text: compactedText(event) }];
      case "web-searched":
        return [{ kind: "notice", tone: "quiet", text: `web search ${neutralise(event.query)}` }];
      case "warning":
        return [{ kind: "notice", tone: "warning", text: neutralise(event.message) }];
      case "turn-failed":
        return [failureNotice(event.error), { kind: "turn-ended", how: "failed" }];
      case "turn-completed":
        return [{ kind: "turn-ended", how: "completed" }];
      case "turn-interrupted":
        return [{ kind: "turn-ended", how: "interrupted" }];
      default:
        return event satisfies never;
    }
  }

  #translateCall(event: CallEvent): ViewEvent[] {
    const at = this.#now();
    const { call, part } = this.#calls.take(event);
    const { callId } = event;
    switch (event.kind) {
      case "call-started": {
        const name = neutraliseLine(event.name);
        return [{ kind: "call-started", callId, name, title: callTitle(name, event.input), at }];
      }
      case "mcp-call-progress":
        return [{ kind: "call-progress", callId, text: progressText(event) }];
      case "command-started":
        return [{ kind: "command-started", callId, script: commandText(event.argv), at }];
      case "command-declined":
        return [{ kind: "command-declined", callId, script: commandText(event.argv) }];
      case "command-output":
        return outputEvents(callId, call.parts.command?.output.take() ?? "");
      case "command-ended": {
        const { exitCode, durationMs } = event;
        const rest = part?.kind === "command" ? part.output.end() : "";
        return [...outputEvents(callId, rest), { kind: "command-ended", callId, exitCode, durationMs }];
      }
      case "call-ended":
        return [
          { ...event, name: neutraliseLine(event.name), content: endText(event.content, call.declined) },
        ];
      case "patch-started":
        return [{ ...event, changes: this.#neutralChanges(event.changes), patch: neutralise(event.patch) }];
      case "patch-ended":
        return [{ ...event, changes: this.#neutralChanges(event.changes) }];
      case "plan-updated":
        return [
          {
            ...event,
            explanation: event.explanation === null ? null : neutralise(event.explanation),
            steps: event.steps.map(({ step, status }) => ({ step: neutraliseLine(step), status })),
          },
        ];
      // The approver shows the question and the answer, and the call itself its arguments and its output.
      default:
        return [];
    }
  }

  #neutralChanges(changes: readonly FileChange[]): FileChange[] {
    const below = this.#cwd === null ? null : `${this.#cwd}/`;
    return changes.map(({ path, kind }) => {
      const shown = below !== null && path.startsWith(below) ? path.slice(below.length) : path;
      return { path: neutraliseLine(shown), kind };
    });
  }
}

function outputEvents(callId: string, text: string): ViewEvent[] {
  return text === "" ? [] : [{ kind: "command-output", callId, text }];
}

export function failureNotice(error: {
  message: string;
  hint?: string | undefined;
}): ViewEvent & { kind: "notice" } {
  const hint = error.hint === undefined ? undefined : neutralise(error.hint);
  return { kind: "notice", tone: "failure", text: neutralise(error.message), hint };
}

function agentLine(change: AgentLineChange | null): ViewEvent[] {
  if (change === null) return [];
  const { line, note, isEnd } = change;
  const isClosed = line.state === "closed";
  const tone = line.state === "failed" ? "warning" : "quiet";
  const text = isEnd && note !== null ? `${line.name} ${note}` : null;
  return [
    {
      kind: "agent-line",
      agentId: line.id,
      line: isClosed ? null : line,
      note: text === null ? null : { kind: "notice", tone, text },
    },
  ];
}

function reconnectText({
  attempt,
  maxAttempts,
  delayMs,
  reason,
}: AgentEvent & { kind: "reconnecting" }): string {
  return `reconnecting in ${formatDuration(delayMs)} (${attempt}/${maxAttempts}): ${neutraliseLine(reason)}`;
}

function compactedText({ tokensBefore, tokensAfter }: AgentEvent & { kind: "compacted" }): string {
  return `the conversation so far was summarised: about ${tokensBefore} tokens became ${tokensAfter}`;
}

/** The output of one command as text that is safe for a terminal. */
class NeutralOutput {
  readonly #stream = new NeutralStream();
  #text = "";

  push(chunk: Uint8Array): void {
    this.#text += this.#stream.push(chunk);
  }

  /** Returns what came since the last time. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  end(): string {
    return this.take() + this.#stream.end();
  }
}
