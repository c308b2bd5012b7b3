import type { Readable } from "node:stream";
import { neutralise } from "../../../../lib/terminal/terminal.js";
import { HeadAndTail } from "../../../../sandbox/index.js";

const KEPT_BYTES = 8 * 1024;
const SHOWN_LINES = 6;
const SHOWN_CHARS = 300;

/** Reads everything that a server writes to its stderr, and keeps the last lines for error messages. */
export class StderrTail {
  readonly #kept = new HeadAndTail(KEPT_BYTES, 0);

  constructor(stderr: Readable) {
    stderr.on("data", (chunk: Buffer) => this.#kept.push(chunk));
    stderr.on("error", () => undefined);
  }

  /** The last lines, safe to show on a terminal. */
  lines(): string[] {
    const { head, tail } = this.#kept.clone().take();
    return neutralise(Buffer.concat([head, tail]).toString())
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-SHOWN_LINES)
      .map((line) => (line.length > SHOWN_CHARS ? `${line.slice(0, SHOWN_CHARS)}…` : line));
  }
}
