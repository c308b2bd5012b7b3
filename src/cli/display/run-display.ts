import { styleText } from "node:util";
import type { AgentEvent, AgentListener } from "../../agent/index.js";
import { NeutralStream, neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { appendOutput, emptyFold, lastLines, lineCountOf } from "../../sandbox/index.js";
import type { PlanStep } from "../../tools/index.js";
import type { CliContext, OutputStream } from "../context.js";
import { usesColour } from "../render.js";
import { AgentLines } from "./agent-lines.js";
import { callTitle, commandText, setupText } from "./call-text.js";
import { withDeclineReason } from "./declined-call.js";
import { LiveRunDisplay } from "./live-run-display.js";
import { progressText, startingText } from "./mcp-text.js";
import { receiptText } from "./receipt-text.js";

/** How many lines of a command's output are shown as they arrive, and how many from its end. */
const LIVE_LINES = 20;
const LAST_LINES = 5;
const SCRIPT_LINES = 8;
const PROGRESS_LINES = 10;

const changeMarks = { add: "A", update: "M", delete: "D" } as const;
const planMarks = { completed: "✔", in_progress: "▶", pending: "□" } as const;

type Style = Parameters<typeof styleText>[0];

/** Shows on stderr what a session is doing: with rows that change on a terminal, otherwise line by line. */
export function showRun(context: CliContext): AgentListener {
  const { stderr, environment } = context;
  const isTerminal = stderr.isTTY === true && !environment.isContinuousIntegration;
  const Display = isTerminal && environment.variables.TERM !== "dumb" ? LiveRunDisplay : RunDisplay;
  const display = new Display(stderr, { usesColour: usesColour(context) });
  return (event) => display.show(event);
}

/**
 * Shows line by line what a session is doing: the model's messages, each call with the output of its command,
 * and what went wrong. Does not show the final message, which is the program's result.
 */
export class RunDisplay {
  readonly #target: OutputStream;
  readonly #usesColour: boolean;
  readonly #commands = new Map<string, CommandOutput>();
  /** The input of calls that have not been shown yet, by call. */
  readonly #unshown = new Map<string, string>();
  /** Why commands were declined, by call. */
  readonly #declined = new Map<string, string>();
  /** The number of progress reports that were shown, by call. */
  readonly #progressShown = new Map<string, number>();
  readonly #agents = new AgentLines();
  #pendingMessage: string | null = null;

  constructor(target: OutputStream, { usesColour }: { usesColour: boolean }) {
    this.#target = target;
    this.#usesColour = usesColour;
  }

  show(event: AgentEvent): void {
    switch (event.kind) {
      case "session-started":
        this.#line(this.#styled("dim", `session ${event.threadId}`));
        break;
      case "setup-started":
      case "setup-ended":
        this.#line(this.#styled("dim", setupText(event)));
        break;
      case "sandbox-ready":
        this.#line(this.#styled("dim", `sandbox ready in ${formatDuration(event.startMs)}`));
        break;
      case "reasoning":
        if (event.text !== "") this.#paragraph(event.text, "italic");
        break;
      case "message":
        this.#showPendingMessage();
        this.#pendingMessage = event.text;
        break;
      case "call-started":
        this.#showPendingMessage();
        this.#unshown.set(event.callId, event.input);
        break;
      case "command-started":
        this.#unshown.delete(event.callId);
        this.#commands.set(event.callId, new CommandOutput());
        this.#script(event.argv);
        break;
      case "command-output":
        for (const line of this.#commands.get(event.callId)?.push(event.chunk) ?? []) this.#output(line);
        break;
      case "command-ended":
        this.#endCommand(event);
        break;
      case "command-declined":
        this.#unshown.delete(event.callId);
        this.#script(event.argv);
        this.#declined.set(event.callId, event.reason);
        break;
      case "call-ended":
        this.#endCall(withDeclineReason(event, this.#declined));
        break;
      case "patch-started":
        this.#unshown.delete(event.callId);
        for (const { path, kind } of event.changes)
          this.#line(
            `${this.#styled("cyan", changeMarks[kind])} ${this.#styled("bold", neutraliseLine(path))}`,
          );
        break;
      case "mcp-servers-starting":
        this.#line(this.#styled("dim", startingText(event.servers)));
        break;
      case "mcp-call-progress":
        this.#progress(event);
        break;
      case "plan-updated":
        this.#unshown.delete(event.callId);
        this.#plan(event.steps);
        break;
      case "reconnecting":
        this.#line(
          this.#styled(
            "yellow",
            `reconnecting in ${formatDuration(event.delayMs)} (${event.attempt}/${event.maxAttempts}): ${neutraliseLine(event.reason)}`,
          ),
        );
        break;
      case "warning":
        for (const [at, line] of neutralise(event.message).split("\n").entries())
          this.#line(this.#styled("yellow", at === 0 ? `warning: ${line}` : line));
        break;
      case "web-searched":
        this.#line(`• web search ${neutraliseLine(event.query)}`);
        break;
      case "agent-started":
      case "agent-state":
      case "agent-event": {
        const { line, note } = this.#agents.take(event, 0) ?? { note: null };
        if (line !== undefined && note !== null)
          this.#line(`${this.#styled("magenta", `[${line.name}]`)} ${note}`);
        break;
      }
      case "receipt":
        for (const line of receiptText(event.receipt).trimEnd().split("\n")) this.#line(line);
        break;
      case "compaction-started":
        this.#line(this.#styled("dim", "summarising the conversation to make room"));
        break;
      case "turn-failed":
      case "turn-interrupted":
        this.#showPendingMessage();
        break;
      case "approval-requested":
      case "approval-answered":
      case "mcp-call-started":
      case "mcp-call-ended":
      case "agent-call-started":
      case "agent-call-ended":
      case "mcp-question-asked":
      case "mcp-question-answered":
      case "patch-ended":
      case "restore-point-created":
      case "setup-output":
      // The output of the command says what was refused.
      case "egress":
      case "turn-started":
      case "text-delta":
      case "compacted":
      case "turn-completed":
        break;
      default:
        event satisfies never;
    }
  }

  #endCommand({ callId, exitCode, durationMs }: AgentEvent & { kind: "command-ended" }): void {
    const output = this.#commands.get(callId);
    if (output === undefined) return;
    const { hiddenLines, lines } = output.end();
    if (hiddenLines > 0) this.#output(this.#styled("dim", `⋮ ${hiddenLines} lines not shown`));
    for (const line of lines) this.#output(line);
    const mark = exitCode === 0 ? this.#styled("green", "✓") : this.#styled("red", "✗");
    this.#line(`  ${mark} ${this.#styled("dim", `exit ${exitCode} · ${formatDuration(durationMs)}`)}`);
  }

  /** A call that showed nothing while it ran is shown now, with the beginning of its output. */
  #endCall({ callId, name, content, success }: AgentEvent & { kind: "call-ended" }): void {
    const input = this.#unshown.get(callId);
    this.#unshown.delete(callId);
    if (!success && !this.#commands.has(callId)) {
      this.#refusal(name, content);
    } else if (input !== undefined) {
      this.#line(`${this.#styled("cyan", "•")} ${this.#styled("bold", callTitle(name, input))}`);
      // The output is shown with the command that started the session.
      const lines = name === "write_stdin" ? [] : neutralise(content).trimEnd().split("\n");
      for (const line of lines.slice(0, LIVE_LINES)) this.#output(line);
      if (lines.length > LIVE_LINES)
        this.#output(this.#styled("dim", `⋮ ${lines.length - LIVE_LINES} lines not shown`));
    }
  }

  /** Shows only the first reports of a call, since a server may send any number of them. */
  #progress(event: AgentEvent & { kind: "mcp-call-progress" }): void {
    const shown = this.#progressShown.get(event.callId) ?? 0;
    this.#progressShown.set(event.callId, shown + 1);
    if (shown < PROGRESS_LINES) this.#output(this.#styled("dim", progressText(event)));
  }

  #script(argv: readonly string[]): void {
    const lines = commandText(argv).split("\n");
    const [first = "", ...more] = lines.slice(0, SCRIPT_LINES);
    this.#line(`${this.#styled("cyan", "$")} ${this.#styled("bold", first)}`);
    for (const line of more) this.#line(`  ${this.#styled("bold", line)}`);
    if (lines.length > SCRIPT_LINES)
      this.#line(this.#styled("dim", `  ⋮ ${lines.length - SCRIPT_LINES} more lines`));
  }

  #refusal(name: string, content: string): void {
    const [first = "", ...more] = neutralise(content).trimEnd().split("\n").slice(0, SCRIPT_LINES);
    this.#line(`${this.#styled("red", "✗")} ${neutraliseLine(name)}: ${first}`);
    for (const line of more) this.#output(line);
  }

  #plan(steps: readonly PlanStep[]): void {
    for (const { step, status } of steps)
      this.#line(`  ${this.#styled("cyan", planMarks[status])} ${neutraliseLine(step)}`);
  }

  #showPendingMessage(): void {
    if (this.#pendingMessage !== null && this.#pendingMessage.trim() !== "")
      this.#paragraph(this.#pendingMessage);
    this.#pendingMessage = null;
  }

  #paragraph(text: string, style?: Style): void {
    this.#line("");
    for (const line of neutralise(text).trim().split("\n"))
      this.#line(style === undefined ? line : this.#styled(style, line));
  }

  #output(line: string): void {
    this.#line(`  ${this.#styled("dim", "│")} ${line}`);
  }

  #styled(style: Style, text: string): string {
    return this.#usesColour && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  }

  #line(text: string): void {
    this.#target.write(`${text}\n`);
  }
}

/** The output of one command in whole lines, which are safe for a terminal. */
class CommandOutput {
  readonly #stream = new NeutralStream();
  #fold = emptyFold;
  #shown = 0;

  push(chunk: Uint8Array): readonly string[] {
    this.#fold = appendOutput(this.#fold, this.#stream.push(chunk));
    const now = this.#fold.head.slice(this.#shown, LIVE_LINES);
    this.#shown += now.length;
    return now;
  }

  /** Returns the last of the lines that were not shown, and the number of the others. */
  end(): { hiddenLines: number; lines: readonly string[] } {
    this.#fold = appendOutput(this.#fold, this.#stream.end());
    const notShown = lineCountOf(this.#fold) - this.#shown;
    const { lines } = lastLines(this.#fold, Math.min(notShown, LAST_LINES));
    return { hiddenLines: notShown - lines.length, lines };
  }
}
