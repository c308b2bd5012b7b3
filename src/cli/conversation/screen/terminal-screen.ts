import { setImmediate as nextRound } from "node:timers/promises";
import { prepareForDrawing } from "../../../lib/env.js";
import type { CliContext, OutputStream } from "../../context.js";
import { terminalSize } from "../../terminal-session.js";
import type { Keyboard } from "../input/keyboard.js";
import { breaksRows, repaint, type ScreenSize } from "./screen-state.js";
import type { ScreenStore } from "./screen-store.js";

/** Resizing a window produces many sizes in a row; the screen is drawn again after this long without one. */
const RESIZE_MS = 100;
const TICK_MS = 1000;

const pasteMode = { on: "\x1b[?2004h", off: "\x1b[?2004l" };
const showCursor = "\x1b[?25h";
const clearWhatIsSeen = "\x1b[2J\x1b[H";

export interface TerminalScreen {
  /** Rejects when drawing the screen fails. */
  readonly broken: Promise<never>;
  clear(): void;
  /** Returns to the shell, until the program is brought back to the foreground. */
  suspend(): Promise<void>;
  /** Draws the last changes and restores the terminal. */
  close(): Promise<void>;
}

export interface TerminalScreenOptions {
  context: CliContext;
  keyboard: Keyboard;
}

export function screenSize(stdout: OutputStream): ScreenSize {
  const { rows, cols } = terminalSize(stdout);
  return { rows, columns: cols };
}

/** Loads the drawing code and takes over the terminal. Closing the screen also releases the keyboard. */
export async function openTerminalScreen(
  store: ScreenStore,
  { context, keyboard }: TerminalScreenOptions,
): Promise<TerminalScreen> {
  const { stdout, environment } = context;
  prepareForDrawing();
  const { mountScreen } = await import("../mount-screen.js");
  const usesColour = !environment.forbidsColor;
  const prepareTerminal = () => usePasteMode(context);
  const mounted = mountScreen(store, { stdout, usesColour, prepareTerminal });
  const clear = () => {
    stdout.write(clearWhatIsSeen);
  };
  const stopFollowing = followSize(store, { stdout, clear });
  const ticking = setInterval(() => tick(store), TICK_MS);
  return {
    broken: mounted.broken,
    clear,
    suspend: () => suspend(store, context),
    async close() {
      clearInterval(ticking);
      stopFollowing();
      await drawn();
      mounted.unmount();
      keyboard.release();
    },
  };
}

/**
 * Has the terminal mark pastes, so that nothing in them is taken for a key. The returned function switches
 * that off. It also leaves raw mode, because it is the only clean-up that runs when the process ends
 * abruptly.
 */
function usePasteMode({ stdin, stdout }: CliContext): () => void {
  stdout.write(pasteMode.on);
  return () => {
    stdout.write(pasteMode.off);
    stdin.setRawMode?.(false);
  };
}

async function suspend(store: ScreenStore, { stdin, stdout, suspend: stopJob }: CliContext): Promise<void> {
  store.update((state) => ({ ...state, isSuspended: true }), { isUrgent: true });
  await drawn();
  stdout.write(pasteMode.off + showCursor);
  stdin.setRawMode?.(false);
  stopJob();
  stdin.setRawMode?.(true);
  stdout.write(pasteMode.on);
  store.update((state) => ({ ...state, isSuspended: false }), { isUrgent: true });
}

/** Waits until Ink has drawn the last change, which it does in the next round of the event loop. */
async function drawn(): Promise<void> {
  await nextRound();
}

function followSize(
  store: ScreenStore,
  { stdout, clear }: { stdout: OutputStream; clear: () => void },
): () => void {
  let timer: NodeJS.Timeout | undefined;
  const settle = () => {
    clear();
    store.update(repaint, { isUrgent: true });
  };
  const resize = () => {
    const size = screenSize(stdout);
    const mustRepaint = breaksRows(store.read().size, size);
    store.update((state) => ({ ...state, size }), { isUrgent: true });
    if (!mustRepaint) return;
    clearTimeout(timer);
    timer = setTimeout(settle, RESIZE_MS);
  };
  stdout.on("resize", resize);
  return () => {
    clearTimeout(timer);
    stdout.off("resize", resize);
  };
}

function tick(store: ScreenStore): void {
  store.update((state) => {
    const isIdle = state.view.turn === null && state.view.agents.size === 0;
    return isIdle ? state : { ...state, now: Date.now() };
  });
}
