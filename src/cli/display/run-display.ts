import { styleText } from "node:util";
import type { AgentEvent, AgentListener, CallEvent, CallSoFar, CommandSoFar } from "../../agent/index.js";
import { CallsSoFar } from "../../agent/index.js";
import type { CliContext, OutputStream } from "../../command/index.js";
import { receiptText, usesColour } from "../../command/index.js";
import { NeutralStream, neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { appendOutput, emptyFold, lastLines, lineCountOf } from "../../sandbox/index.js";
import { AgentLines } from "./agent-lines.js";
import { callTitle, commandText, endText, setupText } from "./call-text.js";
import { LiveRunDisplay } from "./live-run-display.js";
import { progressText, startingText } from "./mcp-text.js";

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
  readonly #calls = new CallsSoFar(() => new CommandOutput());
  readonly #agents = new AgentLines();
  #pendingMessage: string | null = null;

  constructor(target: OutputStream, { usesColour }: { usesColour: boolean }) {
    this.#target = target;
    this.#usesColour = usesColour;
  }

  show(event: AgentEvent): void {
    if ("callId" in event) {
      this.#showCall(event);
      return;
    }
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
      case "mcp-servers-starting":
        this.#line(this.#styled("dim", startingText(event.servers)));
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
      case "setup-output":
      // The output of the command says what was refused.
      case "egress":
      case "turn-started":
      case "request-started":
      case "request-ended":
      case "text-delta":
      case "compacted":
      case "turn-completed":
        break;
      default:
        event satisfies never;
    }
  }

  #showCall(event: CallEvent): void {
    const { call, part } = this.#calls.take(event);
    switch (event.kind) {
      case "call-started":
        this.#showPendingMessage();
        break;
      case "command-started":
      case "command-declined":
        this.#script(event.argv);
        break;
      case "command-output":
        for (const line of call.parts.command?.output.newLines() ?? []) this.#output(line);
        break;
      case "command-ended":
        if (part?.kind === "command") this.#endCommand(part, event);
        break;
      case "patch-started":
        for (const { path, kind } of event.changes)
          this.#line(
            `${this.#styled("cyan", changeMarks[kind])} ${this.#styled("bold", neutraliseLine(path))}`,
          );
        break;
      case "mcp-call-progress":
        // Only the first reports of a call are shown, since a server may send any number of them.
        if (call.reports <= PROGRESS_LINES) this.#output(this.#styled("dim", progressText(event)));
        break;
      case "plan-updated":
        for (const { step, status } of event.steps)
          this.#line(`  ${this.#styled("cyan", planMarks[status])} ${neutraliseLine(step)}`);
        break;
      case "call-ended":
        this.#endCall(call, event);
        break;
      default:
    }
  }

  #endCommand(
    { output }: CommandSoFar<CommandOutput>,
    { exitCode, durationMs }: CallEvent & { kind: "command-ended" },
  ): void {
    const { hiddenLines, lines } = output.end();
    if (hiddenLines > 0) this.#output(this.#styled("dim", `⋮ ${hiddenLines} lines not shown`));
    for (const line of lines) this.#output(line);
    const mark = exitCode === 0 ? this.#styled("green", "✓") : this.#styled("red", "✗");
    this.#line(`  ${mark} ${this.#styled("dim", `exit ${exitCode} · ${formatDuration(durationMs)}`)}`);
  }

  /** A call that showed nothing while it ran is shown now, with the beginning of its output. */
  #endCall(
    call: CallSoFar<CommandOutput>,
    { name, content, success }: CallEvent & { kind: "call-ended" },
  ): void {
    const { start, parts, declined, hasPlan } = call;
    if (!success && parts.command === undefined) {
      this.#refusal(name, endText(content, declined));
    } else if (start !== null && !parts.command && !parts.patch && !hasPlan && declined === null) {
      this.#line(`${this.#styled("cyan", "•")} ${this.#styled("bold", callTitle(name, start.input))}`);
      // The output is shown with the command that started the session.
      const lines = name === "write_stdin" ? [] : neutralise(content).trimEnd().split("\n");
      for (const line of lines.slice(0, LIVE_LINES)) this.#output(line);
      if (lines.length > LIVE_LINES)
        this.#output(this.#styled("dim", `⋮ ${lines.length - LIVE_LINES} lines not shown`));
    }
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
    const [first = "", ...more] = content.trimEnd().split("\n").slice(0, SCRIPT_LINES);
    this.#line(`${this.#styled("red", "✗")} ${neutraliseLine(name)}: ${first}`);
    for (const line of more) this.#output(line);
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

  push(chunk: Uint8Array): void {
    this.#fold = appendOutput(this.#fold, this.#stream.push(chunk));
  }

  /** The lines at its beginning that were not shown yet. */
  newLines(): readonly string[] {
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
