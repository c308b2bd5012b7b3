import { fitWidth } from "./display-width.js";
import { neutraliseLine } from "./terminal.js";

/** What a progress reporter writes to: stderr, as a rule. */
export interface ProgressTarget {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface ProgressOptions {
  /** Dim the live line. Default false. */
  usesColour?: boolean | undefined;
}

/** Tells a person what is going on. Call `close` before anything else is written to the same place. */
export interface Progress {
  /** What is being done now. On a terminal it replaces the step before; elsewhere each new step is a line. */
  step(line: string): void;
  /** Something to keep: a line of its own, above the live line. */
  note(line: string): void;
  /** Removes the live line. The reporter can be used again afterwards. */
  close(): void;
}

/** One live line on a terminal, plain lines elsewhere. It runs no timer: it speaks only when spoken to. */
export function createProgress(target: ProgressTarget, options: ProgressOptions = {}): Progress {
  return target.isTTY === true ? liveLine(target, options) : plainLines(target);
}

function liveLine(target: ProgressTarget, { usesColour = false }: ProgressOptions): Progress {
  let current = "";
  const draw = (line: string) => {
    if (line === current) return;
    // A line that reaches the last column would wrap, and the next return would leave a part of it.
    const shown = fitWidth(line, (target.columns ?? 80) - 1);
    const styled = usesColour && shown !== "" ? `\x1b[2m${shown}\x1b[22m` : shown;
    target.write(`${current === "" ? "" : "\r\x1b[2K"}${styled}`);
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
