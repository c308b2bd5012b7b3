/** The first and the last lines of an output, and the number of all lines. Its size is limited. */
export interface LineFold {
  readonly head: readonly string[];
  readonly tail: readonly string[];
  /** Counts only lines that have ended. */
  readonly lineCount: number;
  /** The last line, which has not ended yet. */
  readonly unfinished: string;
}

/** The number of lines that are kept at each end. */
const KEPT_LINES = 400;
/** Longer lines are cut off and marked. */
const LINE_CHARS = 2000;

export const emptyFold: LineFold = { head: [], tail: [], lineCount: 0, unfinished: "" };

/** `text` must not contain control characters except newlines and tabs. */
export function appendOutput(fold: LineFold, text: string): LineFold {
  const end = text.lastIndexOf("\n");
  if (end === -1) return { ...fold, unfinished: cutLine(fold.unfinished + text.slice(0, LINE_CHARS * 2)) };
  const lines = (fold.unfinished + text.slice(0, end)).split("\n");
  const room = KEPT_LINES - fold.head.length;
  const head = room > 0 ? [...fold.head, ...lines.slice(0, room).map(cutLine)] : fold.head;
  const later = lines.slice(Math.max(0, room));
  return {
    head,
    tail:
      later.length === 0
        ? fold.tail
        : [...fold.tail, ...later.slice(-KEPT_LINES).map(cutLine)].slice(-KEPT_LINES),
    lineCount: fold.lineCount + lines.length,
    unfinished: cutLine(text.slice(end + 1, end + 1 + LINE_CHARS * 2)),
  };
}

export function foldOf(text: string): LineFold {
  return appendOutput(emptyFold, text);
}

/** Counts the unfinished line, too. */
export function lineCountOf({ lineCount, unfinished }: LineFold): number {
  return lineCount + (unfinished === "" ? 0 : 1);
}

/** Returns the last lines, and the number of lines before them. */
export function lastLines(fold: LineFold, count: number): { lines: string[]; hiddenLines: number } {
  const whole = fold.unfinished === "" ? [] : [fold.unfinished];
  const known = [...(fold.tail.length < count ? fold.head : []), ...fold.tail, ...whole];
  const lines = count === 0 ? [] : known.slice(-count);
  return { lines, hiddenLines: lineCountOf(fold) - lines.length };
}

/** Returns all kept lines, and the number of lines that are missing between them. */
export function keptLines(fold: LineFold): {
  head: readonly string[];
  missingLines: number;
  tail: readonly string[];
} {
  const tail = fold.unfinished === "" ? fold.tail : [...fold.tail, fold.unfinished];
  return { head: fold.head, missingLines: lineCountOf(fold) - fold.head.length - tail.length, tail };
}

function cutLine(line: string): string {
  return line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS - 1)}…` : line;
}
