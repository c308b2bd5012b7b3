import type { BatchEvent } from "../../../batch/index.js";
import type { CliContext, OutputStream } from "../../../command/index.js";
import { fitWidth } from "../../../lib/terminal/display-width.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { LiveRows } from "../../display/live-rows.js";
import { batchRows, progressLine, resultLine, stopText, waitText } from "./batch-rows.js";
import { BatchView } from "./batch-view.js";

const REDRAW_MS = 500;
const REPORT_MS = 30_000;
/** Longer lines are cut: the engine's message about a failed build may be long. The results have all of it. */
const LONGEST_LINE = 300;

export interface BatchDisplay extends Disposable {
  show(event: BatchEvent): void;
  /** Prints a line that stays on the screen. */
  note(line: string): void;
}

/** The display for `--json`, where the printed events take its place. */
export const silent: BatchDisplay = {
  show: () => undefined,
  note: () => undefined,
  [Symbol.dispose]: () => undefined,
};

/** Shows on stderr how a run goes: rows that change on a terminal, otherwise a line for each attempt. */
export function showBatch({ stderr, environment }: CliContext): BatchDisplay {
  const isTerminal = stderr.isTTY === true && !environment.isContinuousIntegration;
  return isTerminal && environment.variables.TERM !== "dumb" ? new LiveBatch(stderr) : new PlainBatch(stderr);
}

class LiveBatch implements BatchDisplay {
  readonly #target: OutputStream;
  readonly #rows: LiveRows;
  readonly #view = new BatchView();
  readonly #timer: NodeJS.Timeout;

  constructor(target: OutputStream) {
    this.#target = target;
    this.#rows = new LiveRows(target);
    this.#timer = setInterval(() => this.#draw([]), REDRAW_MS);
  }

  show(event: BatchEvent): void {
    this.#view.take(event, performance.now());
    this.#draw(linesOf(event));
  }

  note(line: string): void {
    this.#draw([line]);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#rows.draw([], []);
  }

  #draw(lines: readonly string[]): void {
    const rows = this.#view.total === 0 ? [] : batchRows(this.#view, performance.now());
    this.#rows.draw(lines.map(this.#fitted), rows.map(this.#fitted));
  }

  readonly #fitted = (line: string) => fitWidth(neutraliseLine(line), (this.#target.columns || 80) - 1);
}

class PlainBatch implements BatchDisplay {
  readonly #target: OutputStream;
  readonly #view = new BatchView();
  readonly #timer: NodeJS.Timeout;

  constructor(target: OutputStream) {
    this.#target = target;
    this.#timer = setInterval(() => this.note(progressLine(this.#view, performance.now())), REPORT_MS);
  }

  show(event: BatchEvent): void {
    this.#view.take(event, performance.now());
    const isWaiting = event.kind === "draining" || event.kind === "stopping";
    const stop = this.#view.stop;
    if (isWaiting && stop !== null) this.note(stopText(stop, this.#view));
    if (event.kind === "waiting")
      this.note(event.reason === null ? "attempts start again" : waitText(event.reason));
    for (const line of linesOf(event)) this.note(line);
  }

  note(line: string): void {
    this.#target.write(`${fitWidth(neutraliseLine(line), LONGEST_LINE)}\n`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The lines of an event that stay on the screen. */
function linesOf(event: BatchEvent): string[] {
  if (event.kind === "started" && event.finished > 0)
    return [`${event.finished} of ${event.attempts} attempts had ended before`];
  if (event.kind === "attempt-ended") return [resultLine(event.result)];
  if (event.kind !== "attempt-retried") return [];
  const { task, attempt, failure } = event;
  return [`${task} #${attempt}: ${failure.class}: ${failure.message}; it will be tried again`];
}
