import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { Keyboard } from "../../../../../src/cli/conversation/input/keyboard.js";
import type { Key } from "../../../../../src/cli/conversation/input/keys.js";

/** A terminal whose keys the test presses. */
function openTerminal() {
  const modes: boolean[] = [];
  let interrupts = 0;
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => modes.push(isRaw),
  });
  return { stdin, modes, interrupt: () => interrupts++, interrupts: () => interrupts };
}

function listen(keyboard: Keyboard) {
  const keys: Key[] = [];
  let hasLeft = false;
  keyboard.listen({
    press: (key) => keys.push(key),
    leave: () => {
      hasLeft = true;
    },
  });
  return { keys, hasLeft: () => hasLeft };
}

const text = (letters: string): Key => ({ kind: "text", text: letters });
const enter: Key = { kind: "key", name: "enter" };

describe("the keyboard of a conversation", () => {
  it("keeps what is typed until somebody listens, in order", async () => {
    const terminal = openTerminal();
    const keyboard = await Keyboard.open(terminal);
    expect(terminal.modes).toEqual([true]);
    terminal.stdin.write("fix it\r");
    terminal.stdin.write("\x1b[A");
    await new Promise(setImmediate);
    const heard = listen(keyboard);
    expect(heard.keys).toEqual([text("fix it"), enter, { kind: "key", name: "up" }]);
    terminal.stdin.write("x");
    await new Promise(setImmediate);
    expect(heard.keys.at(-1)).toEqual(text("x"));
    keyboard.release();
    expect(terminal.modes).toEqual([true, false]);
  });

  it("takes the end of a line that was typed before raw mode as Enter, and a later ctrl-J as a new line", async () => {
    const terminal = openTerminal();
    terminal.stdin.write("fix it\n");
    const keyboard = await Keyboard.open(terminal);
    terminal.stdin.write("\n");
    await new Promise(setImmediate);
    expect(listen(keyboard).keys).toEqual([text("fix it"), enter, { kind: "key", name: "newline" }]);
  });

  it("makes an interrupt of ctrl-C as long as nobody listens", async () => {
    const terminal = openTerminal();
    const keyboard = await Keyboard.open(terminal);
    terminal.stdin.write("\x03");
    await new Promise(setImmediate);
    expect(terminal.interrupts()).toBe(1);
    expect(listen(keyboard).keys).toEqual([]);
  });

  it("tells whoever listens too late that the terminal is gone", async () => {
    const terminal = openTerminal();
    const keyboard = await Keyboard.open(terminal);
    terminal.stdin.end();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(listen(keyboard).hasLeft()).toBe(true);
  });
});
