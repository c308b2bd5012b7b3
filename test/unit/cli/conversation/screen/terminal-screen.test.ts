import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { messageBlocks } from "../../../../../src/cli/conversation/screen/block.js";
import { piecesOf } from "../../../../../src/cli/conversation/screen/message-pieces.js";
import {
  initialScreen,
  repaint,
  type ScreenState,
} from "../../../../../src/cli/conversation/screen/screen-state.js";
import { ScreenStore } from "../../../../../src/cli/conversation/screen/screen-store.js";
import { TerminalScreen } from "../../../../../src/cli/conversation/screen/terminal-screen.js";
import { withBlock } from "../../../../../src/cli/conversation/screen/view-state.js";
import { testContext } from "../../../../support/cli-context.js";
import { Screen } from "../../../../support/screen.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const size = { columns: 40, rows: 12 };

function open() {
  const restores = new Set<() => void>();
  const context = {
    ...testContext({ isTerminal: true, variables: { NO_COLOR: "1" } }),
    onExit: (restore: () => void) => {
      restores.add(restore);
      return { [Symbol.dispose]: () => void restores.delete(restore) };
    },
  };
  const store = new ScreenStore({ ...initialScreen(size, 0), stage: "open", footer: ["workspace-write"] });
  const screen = new TerminalScreen(store, context);
  const seen = async () => {
    const terminal = new Screen({ rows: size.rows, cols: size.columns });
    vi.useRealTimers();
    await terminal.write(context.written().stdout.replaceAll("\n", "\r\n"));
    vi.useFakeTimers();
    return terminal.history.map((row) => row.trimEnd()).filter((row) => row !== "");
  };
  return { context, restores, store, screen, seen };
}

const said = (text: string) => (state: ScreenState) => ({
  ...state,
  view: messageBlocks(piecesOf(text)).reduce(withBlock, state.view),
});
/** Pastes are no longer marked, and the cursor is seen. */
const restored = "\x1b[?2004l\x1b[?25h";
const live = ["›", "workspace-write"];

it("shows each finished block once, above the live part, and all that fits again when it is repainted", async () => {
  const { store, screen, seen } = open();
  store.update(said("one"));
  vi.advanceTimersByTime(100);
  store.update(said("two"), { isUrgent: true });
  expect(await seen()).toEqual(["● one", "● two", ...live]);
  store.update(repaint, { isUrgent: true });
  expect(await seen()).toEqual(["● one", "● two", ...live]);
  screen.close();
});

it("draws nothing any more once it is closed, and restores the terminal", () => {
  const { context, restores, store, screen } = open();
  expect(restores.size).toBe(1);
  store.update(said("one"));
  screen.close();
  const { stdout } = context.written();
  expect(stdout).toContain("● one");
  expect(stdout.endsWith(restored)).toBe(true);
  expect(restores.size).toBe(0);
  store.update(said("two"), { isUrgent: true });
  vi.advanceTimersByTime(10_000);
  expect(context.written().stdout).toBe(stdout);
});

it("restores the terminal when the program ends without closing it", () => {
  const { context, restores } = open();
  for (const restore of restores) restore();
  expect(context.written().stdout.endsWith(restored)).toBe(true);
});

it("says that it is broken when something cannot be drawn", async () => {
  const { store, screen } = open();
  store.update(() => ({}) as ScreenState, { isUrgent: true });
  await expect(screen.broken).rejects.toThrow(TypeError);
});
