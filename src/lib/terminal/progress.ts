import { fitWidth } from "./display-width.js";
import { neutraliseLine } from "./terminal.js";

export interface ProgressTarget {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface ProgressOptions {
  /** Whether the live line is dimmed. Default: false. */
  usesColour?: boolean | undefined;
  /** Whether something is printed before it that may not end its line, such as the output of a command. Default: false. */
  followsOutput?: boolean | undefined;
}

/** Shows a person what is going on. Call `close` before anything else is written to the same target. */
export interface Progress {
  /** On a terminal it replaces the previous step; elsewhere each new step is a line. */
  step(line: string): void;
  note(line: string): void;
  /** Removes the live line. The reporter can be used again afterwards. */
  close(): void;
}

/** One live line on a terminal, plain lines elsewhere. Runs no timer: it writes only when it is called. */
export function createProgress(target: ProgressTarget, options: ProgressOptions = {}): Progress {
  return target.isTTY === true ? liveLine(target, options) : plainLines(target);
}

function liveLine(
  target: ProgressTarget,
  { usesColour = false, followsOutput = false }: ProgressOptions,
): Progress {
  let current = "";
  const draw = (line: string) => {
    if (line === current) return;
    // A line that fills the last column would wrap, and a carriage return would not go back to its start. A terminal that does not know its
    // width says 0.
    const columns = target.columns || 80;
    const shown = fitWidth(line, columns - 1);
    const styled = usesColour && shown !== "" ? `\x1b[2m${shown}\x1b[22m` : shown;
    // So many spaces end on the next line if something stands on this one, and on this one if not.
    const begin = followsOutput ? `${" ".repeat(columns)}\r` : "";
    target.write(`${current === "" ? begin : "\r\x1b[2K"}${styled}`);
    current = line;
  };
  return {
    step: (line) => draw(neutraliseLine(line)),
    note: (line) => {
      const step = current;
      draw("");
      target.write(`${neutraliseLine(line)}\n`);
      draw(step);
    },
    close: () => draw(""),
  };
}

function plainLines(target: ProgressTarget): Progress {
  let current = "";
  return {
    step: (line) => {
      if (line !== current) target.write(`${neutraliseLine(line)}\n`);
      current = line;
    },
    note: (line) => {
      target.write(`${neutraliseLine(line)}\n`);
    },
    close: () => undefined,
  };
}

/** Whoever waits no longer than this is told nothing. */
const QUIET_MS = 2000;
const REDRAW_MS = 500;
/** Between two lines that stay, where nothing can be drawn over. */
const APART_MS = 10_000;

/**
 * Shows work that takes longer than two seconds, until this is disposed of: on a terminal one live line, elsewhere a plain line every ten seconds.
 * `describe` says what to show at a time of `performance.now()`; null for nothing.
 */
export class LongWork implements Disposable {
  readonly #progress: Progress;
  readonly #describe: (now: number) => string | null;
  readonly #timer: NodeJS.Timeout;
  readonly #apartMs: number;
  #nextAt = performance.now() + QUIET_MS;

  constructor(
    target: ProgressTarget,
    describe: (now: number) => string | null,
    options: ProgressOptions = {},
  ) {
    this.#progress = createProgress(target, options);
    this.#describe = describe;
    this.#apartMs = target.isTTY === true ? 0 : APART_MS;
    this.#timer = setInterval(() => this.#show(), REDRAW_MS).unref();
  }

  #show(): void {
    const now = performance.now();
    if (now < this.#nextAt) return;
    const line = this.#describe(now);
    if (line === null) this.#progress.close();
    else {
      this.#progress.step(line);
      this.#nextAt = now + this.#apartMs;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#progress.close();
  }
}
