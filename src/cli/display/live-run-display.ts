import type { AgentEvent } from "../../agent/index.js";
import { noUsage } from "../../agent/index.js";
import type { OutputStream } from "../../command/index.js";
import { terminalSize } from "../../command/index.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { ansiLine } from "../conversation/screen/ansi-line.js";
import { blocksLines } from "../conversation/screen/block-lines.js";
import { activityRows, agentRows, runningRows } from "../conversation/screen/live-lines.js";
import { fitLine, type StyledLine } from "../conversation/screen/styled-line.js";
import { EventNeutraliser } from "../conversation/screen/view-event.js";
import { initialView, reduceView, type ViewState, withBlock } from "../conversation/screen/view-state.js";
import { LiveRows } from "./live-rows.js";

const SHOWN_LINES = 8;
const FRAME_MS = 50;
const TICK_MS = 1000;

/**
 * Shows at a terminal what a session is doing: each call with the end of its output. Does not show the final
 * message, which is the program's result, and draws nothing while a person is asked a question.
 */
export class LiveRunDisplay {
  readonly #target: OutputStream;
  readonly #usesColour: boolean;
  readonly #rows: LiveRows;
  readonly #neutraliser = new EventNeutraliser(() => Date.now());
  #view: ViewState = initialView;
  #printed = 0;
  #pendingMessage: AgentEvent | null = null;
  #questions = 0;
  #timer: { handle: NodeJS.Timeout; dueAt: number } | null = null;

  constructor(target: OutputStream, { usesColour }: { usesColour: boolean }) {
    this.#target = target;
    this.#usesColour = usesColour;
    this.#rows = new LiveRows(target);
  }

  show(event: AgentEvent): void {
    this.#take(event);
    const questions = questionChange(event);
    if (questions > 0) this.#clear();
    this.#questions += questions;
    if (questions > 0) return;
    if (isTurnEnd(event)) this.#draw();
    else this.#drawWithin(FRAME_MS);
  }

  #take(event: AgentEvent): void {
    switch (event.kind) {
      case "session-started":
        this.#note(`session ${event.threadId}`);
        break;
      case "sandbox-ready":
        this.#note(`sandbox ready in ${formatDuration(event.startMs)}`);
        break;
      case "text-delta":
        break;
      case "message":
        this.#showPendingMessage();
        this.#pendingMessage = event;
        break;
      case "turn-completed":
        this.#pendingMessage = null;
        this.#apply(event);
        break;
      case "turn-interrupted":
      case "turn-failed":
        // The reason is printed later, as the program's error.
        this.#showPendingMessage();
        this.#apply({ kind: "turn-completed", usage: noUsage });
        break;
      case "call-started":
        this.#showPendingMessage();
        this.#apply(event);
        break;
      default:
        this.#apply(event);
    }
  }

  #apply(event: AgentEvent): void {
    for (const shown of this.#neutraliser.translate(event)) this.#view = reduceView(this.#view, shown);
  }

  #note(text: string): void {
    this.#view = withBlock(this.#view, { kind: "notice", tone: "quiet", text: neutralise(text) });
  }

  #showPendingMessage(): void {
    if (this.#pendingMessage !== null) this.#apply(this.#pendingMessage);
    this.#pendingMessage = null;
  }

  #drawWithin(ms: number): void {
    const dueAt = Date.now() + ms;
    if (this.#timer !== null && this.#timer.dueAt <= dueAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer.handle);
    this.#timer = { dueAt, handle: setTimeout(() => this.#draw(), ms) };
  }

  #draw(): void {
    if (this.#timer !== null) clearTimeout(this.#timer.handle);
    this.#timer = null;
    if (this.#questions > 0) return;
    const { rows, cols } = terminalSize(this.#target);
    const columns = Math.max(1, cols - 1);
    const lines = this.#takeFinished(columns);
    const now = Date.now();
    const activity = [
      ...agentRows(this.#view, { columns, now }),
      ...activityRows(this.#view, { columns, now, isAsking: false, interrupts: "ctrl-C" }),
    ];
    const maxRows = Math.max(1, rows - 2 - activity.length);
    const running = runningRows(this.#view, { columns, maxRows, count: SHOWN_LINES, now }).slice(0, maxRows);
    const live = [...running, ...activity].slice(0, rows - 1).map((line) => fitLine(line, columns));
    this.#rows.draw(
      lines,
      live.map((line) => this.#text(line)),
    );
    // Draws the elapsed time, which changes without an event.
    if (live.length > 0) this.#drawWithin(TICK_MS);
  }

  /** Draws the finished blocks, since an answer may depend on them, and makes room for the question. */
  #clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer.handle);
    this.#timer = null;
    if (this.#questions > 0) return;
    const { cols } = terminalSize(this.#target);
    this.#rows.draw(this.#takeFinished(Math.max(1, cols - 1)), []);
  }

  #takeFinished(columns: number): string[] {
    const { finished } = this.#view;
    const earlier = finished[this.#printed - 1];
    const lines = blocksLines(finished.slice(this.#printed), { columns, shownLines: SHOWN_LINES, earlier });
    this.#printed = finished.length;
    return lines.map((line) => this.#text(line));
  }

  #text(line: StyledLine): string {
    return ansiLine(line, { usesColour: this.#usesColour }).trimEnd();
  }
}

/** By how much an event changes the number of questions on the screen. */
function questionChange(event: AgentEvent): number {
  switch (event.kind) {
    case "approval-requested":
    case "mcp-question-asked":
      return 1;
    case "approval-answered":
    case "mcp-question-answered":
      return -1;
    case "agent-event":
      return questionChange(event.event);
    case "call-started":
      return event.name === "request_user_input" ? 1 : 0;
    case "call-ended":
      return event.name === "request_user_input" ? -1 : 0;
    default:
      return 0;
  }
}

/** Whether the turn of the session itself is over. */
export function isTurnEnd({ kind }: AgentEvent): boolean {
  return kind === "turn-completed" || kind === "turn-failed" || kind === "turn-interrupted";
}
