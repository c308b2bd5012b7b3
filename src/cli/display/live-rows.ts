import type { OutputStream } from "../context.js";

/**
 * Rows at the bottom of the terminal that change, below lines that stay. Uses only the control sequences for
 * moving up and for clearing.
 */
export class LiveRows {
  readonly #target: OutputStream;
  #shown: readonly string[] = [];

  constructor(target: OutputStream) {
    this.#target = target;
  }

  /** Adds `lines` and replaces the changing rows. No row may be wider than the terminal or have a newline. */
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
