import type { CliContext, OutputStream } from "../../../command/index.js";
import { terminalSize } from "../../../command/index.js";
import { LiveRows, showCursor } from "../../display/live-rows.js";
import { ansiLine } from "./ansi-line.js";
import { blocksLines } from "./block-lines.js";
import { FOLD_HINT, liveRegion } from "./live-lines.js";
import { markdownLines } from "./markdown-lines.js";
import { breaksRows, repaint, type ScreenSize } from "./screen-state.js";
import type { ScreenStore } from "./screen-store.js";
import type { StyledLine } from "./styled-line.js";
import { type AnswerSource, TerminalPictures } from "./terminal-pictures.js";

/** Resizing a window produces many sizes in a row; the screen is drawn again after this long without one. */
const RESIZE_MS = 100;
const TICK_MS = 1000;

/** Has the terminal mark pastes, so that nothing in them is taken for a key. */
const pasteMode = { on: "\x1b[?2004h", off: "\x1b[?2004l" };

export function screenSize(stdout: OutputStream): ScreenSize {
  const { rows, cols } = terminalSize(stdout);
  return { rows, columns: cols };
}

/** Draws what the store has, until it is closed: finished blocks scroll up and never change, and the live part is drawn again below them. */
export class TerminalScreen {
  /** Rejects when drawing the screen fails. */
  readonly broken: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  readonly #store: ScreenStore;
  readonly #context: CliContext;
  readonly #rows: LiveRows;
  readonly #pictures: TerminalPictures | null;
  #drawn = { generation: 0, blocks: 0 };
  #resizing: NodeJS.Timeout | undefined;
  readonly #ticking: NodeJS.Timeout;
  readonly #atExit: Disposable;

  /** With a keyboard, the terminal is asked whether it shows pictures. */
  constructor(store: ScreenStore, context: CliContext, keyboard: AnswerSource | null = null) {
    this.#store = store;
    this.#context = context;
    this.#rows = new LiveRows(context.stdout);
    this.broken = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // Without this, a failure that comes before anybody awaits the promise would end the process.
    this.broken.catch(() => undefined);
    context.stdout.write(pasteMode.on);
    this.#pictures =
      keyboard &&
      new TerminalPictures({
        keyboard,
        environment: context.environment,
        write: (text) => void context.stdout.write(text),
        onChange: () => this.#draw(),
      });
    context.stdout.on("resize", this.#resize);
    this.#atExit = context.onExit(this.#restore);
    this.#ticking = setInterval(() => tick(store), TICK_MS);
    store.watch(this.#draw);
    this.#draw();
  }

  /** Resolves when no answer of the terminal is to be expected any more, which a shell would take for typed text. */
  async answered(): Promise<void> {
    await this.#pictures?.settled;
  }

  /** Returns to the shell, until the program is brought back to the foreground. */
  suspend(): void {
    const { stdin, stdout, suspend } = this.#context;
    this.#store.update((state) => ({ ...state, isSuspended: true }), { isUrgent: true });
    this.#restore();
    suspend();
    stdin.setRawMode?.(true);
    stdout.write(pasteMode.on);
    this.#store.update((state) => ({ ...state, isSuspended: false }), { isUrgent: true });
  }

  /** Draws the last changes and restores the terminal. */
  close(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#resizing);
    this.#context.stdout.off("resize", this.#resize);
    this.#pictures?.close();
    this.#store.flush();
    this.#draw();
    this.#store.watch(null);
    this.#restore();
    this.#atExit[Symbol.dispose]();
  }

  readonly #restore = (): void => {
    this.#context.stdout.write(pasteMode.off + showCursor);
    this.#context.stdin.setRawMode?.(false);
  };

  readonly #draw = (): void => {
    try {
      this.#drawState();
    } catch (error) {
      this.#fail(error);
    }
  };

  #drawState(): void {
    const state = this.#store.read();
    const { finished } = state.view;
    const { generation, from } = state.painted;
    if (generation !== this.#drawn.generation) {
      this.#rows.clear();
      this.#drawn = { generation, blocks: from };
    }
    const { blocks } = this.#drawn;
    const columns = Math.max(1, state.size.columns - 1);
    const room = { columns, foldHint: FOLD_HINT, markdownLines };
    const live = liveRegion(state, markdownLines);
    const usesColour = !this.#context.environment.forbidsColor;
    const text = (line: StyledLine) => ansiLine(line, { usesColour });
    const lines: string[] = [];
    for (const [index, block] of finished.slice(blocks).entries()) {
      const picture = block.kind === "picture" ? this.#pictures?.drawn(block.picture, state.size) : null;
      // What comes after a picture waits for it, since nothing can be drawn above what has scrolled up.
      if (picture === undefined && this.#pictures !== null) break;
      lines.push(...blocksLines([block], { ...room, earlier: finished[blocks + index - 1] }).map(text));
      if (picture) lines.push(picture);
      this.#drawn.blocks++;
    }
    this.#rows.draw(lines, live.lines.map(text), live.cursor);
  }

  readonly #resize = (): void => {
    const size = screenSize(this.#context.stdout);
    const mustRepaint = breaksRows(this.#store.read().size, size);
    this.#store.update((state) => ({ ...state, size }), { isUrgent: true });
    if (!mustRepaint) return;
    clearTimeout(this.#resizing);
    this.#resizing = setTimeout(() => this.#store.update(repaint, { isUrgent: true }), RESIZE_MS);
  };
}

function tick(store: ScreenStore): void {
  store.update((state) => {
    const { turn, agents, calls } = state.view;
    const isIdle = turn === null && agents.size === 0 && calls.length === 0;
    return isIdle ? state : { ...state, now: Date.now() };
  });
}
