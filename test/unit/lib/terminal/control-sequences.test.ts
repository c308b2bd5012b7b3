import { describe, expect, it } from "vitest";
import { TerminalTokens } from "../../../../src/lib/terminal/control-sequences.js";

describe("a sequence whose end never comes", () => {
  it.each(["]", "P", "^", "_", "X", "k"])("shows what ESC %s wanted to hide", (opener) => {
    const tokens = new TerminalTokens();
    const found = [...tokens.push(`\x1b${opener}hidden\n`), ...tokens.end()];
    expect(found).toEqual([
      { kind: "control", character: "\x1b" },
      { kind: "text", text: `${opener}hidden\n` },
    ]);
  });
});
