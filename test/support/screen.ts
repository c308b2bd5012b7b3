import { createRequire } from "node:module";
import type { Terminal as HeadlessTerminal, IBufferLine } from "@xterm/headless";

// The package is CommonJS whose names Node cannot see from outside.
const { Terminal } = createRequire(import.meta.url)("@xterm/headless") as typeof import("@xterm/headless");

export interface ScreenSize {
  rows: number;
  cols: number;
}

/** A terminal without a window: what a person would see of the bytes that a program writes. */
export class Screen {
  readonly terminal: HeadlessTerminal;
  /** What would have been done besides drawing: titles, the clipboard, answers that come back as typed input. */
  readonly deeds: string[] = [];

  constructor({ rows, cols }: ScreenSize) {
    this.terminal = new Terminal({ rows, cols, scrollback: 10_000, allowProposedApi: true });
    this.terminal.onTitleChange((title) => this.deeds.push(`title ${title}`));
    this.terminal.onBell(() => this.deeds.push("bell"));
    this.terminal.onData((answer) => this.deeds.push(`answer ${JSON.stringify(answer)}`));
    this.terminal.parser.registerOscHandler(52, (text) => {
      this.deeds.push(`clipboard ${text}`);
      return true;
    });
  }

  async write(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.terminal.write(text, resolve);
    });
  }

  resize({ rows, cols }: ScreenSize): void {
    this.terminal.resize(cols, rows);
  }

  /** The rows that are seen, without what scrolled away. */
  get rows(): string[] {
    const { active } = this.terminal.buffer;
    return this.#lines(active.viewportY, active.viewportY + this.terminal.rows);
  }

  /** Everything from the beginning. */
  get history(): string[] {
    return this.#lines(0, this.terminal.buffer.active.length);
  }

  /** Where the cursor stands among the rows that are seen. */
  get cursor(): { row: number; column: number } {
    const { cursorX, cursorY } = this.terminal.buffer.active;
    return { row: cursorY, column: cursorX };
  }

  #lines(from: number, to: number): string[] {
    const lines: string[] = [];
    for (let at = from; at < to; at++) lines.push(textOf(this.terminal.buffer.active.getLine(at)));
    return lines;
  }
}

function textOf(line: IBufferLine | undefined): string {
  return line?.translateToString(true) ?? "";
}
