import type { OutputStream } from "../context.js";

/** Rows at the bottom of a terminal that change, under lines that stay. They need no more of a terminal than going up and clearing. */
export class LiveRows {
  readonly #target: OutputStream;
  #shown: readonly string[] = [];

  constructor(target: OutputStream) {
    this.#target = target;
  }

  /** Lines that stay, and what is under them from now on. No row may be wider than the terminal or have a newline. */
  draw(lines: readonly string[], rows: readonly string[]): void {
    if (lines.length === 0 && isSame(rows, this.#shown)) return;
    const back = this.#shown.length === 0 ? "" : `\x1b[${this.#shown.length}A\r\x1b[J`;
    this.#target.write(back + [...lines, ...rows].map((line) => `${line}\n`).join(""));
    this.#shown = rows;
  }
}

function isSame(rows: readonly string[], others: readonly string[]): boolean {
  return rows.length === others.length && rows.every((row, index) => row === others[index]);
}
