import type { OutputStream } from "../../command/index.js";

/** A place in the changing rows. */
export interface CursorPlace {
  x: number;
  y: number;
}

const hideCursor = "\x1b[?25l";
export const showCursor = "\x1b[?25h";
/** Terminals that know these show what is between them at once, without flickering. */
const together = { begin: "\x1b[?2026h", end: "\x1b[?2026l" };

/** Rows at the bottom of the terminal that change, below lines that stay. */
export class LiveRows {
  readonly #target: OutputStream;
  #shown: readonly string[] = [];
  #cursor: CursorPlace | null | undefined;

  constructor(target: OutputStream) {
    this.#target = target;
  }

  /**
   * Adds `lines` and replaces the changing rows. No row may be wider than the terminal or have a newline. The cursor is put in its
   * place; null hides it, and without one it stays below the rows.
   */
  draw(lines: readonly string[], rows: readonly string[], cursor?: CursorPlace | null): void {
    const isSame = rows.length === this.#shown.length && rows.every((row, at) => row === this.#shown[at]);
    if (lines.length === 0 && isSame && cursor?.x === this.#cursor?.x && cursor?.y === this.#cursor?.y)
      return;
    const back = this.#shown.length === 0 ? "" : `${up(this.#cursor?.y ?? this.#shown.length)}\r\x1b[J`;
    const text = back + [...lines, ...rows].map((line) => `${line}\n`).join("");
    const place = cursor ? `${up(rows.length - cursor.y)}\x1b[${cursor.x + 1}G${showCursor}` : "";
    this.#target.write(
      cursor === undefined ? text : together.begin + hideCursor + text + place + together.end,
    );
    this.#shown = rows;
    this.#cursor = cursor;
  }

  /** Clears what is seen of the terminal. */
  clear(): void {
    this.#target.write("\x1b[2J\x1b[H");
    this.#shown = [];
    this.#cursor = undefined;
  }
}

function up(rows: number): string {
  return rows === 0 ? "" : `\x1b[${rows}A`;
}
