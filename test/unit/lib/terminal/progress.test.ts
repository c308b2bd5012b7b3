import { describe, expect, it } from "vitest";
import { createProgress } from "../../../../src/lib/terminal/progress.js";

function target(isTTY: boolean, columns?: number) {
  const written: string[] = [];
  return {
    isTTY,
    write: (text: string) => written.push(text),
    text: () => written.join(""),
    ...(columns === undefined ? {} : { columns }),
  };
}

describe("progress on a terminal", () => {
  it("keeps one live line and removes it in the end", () => {
    const terminal = target(true);
    const progress = createProgress(terminal);
    progress.step("pulling");
    progress.step("starting");
    progress.close();
    expect(terminal.text()).toBe("pulling\r\x1b[2Kstarting\r\x1b[2K");
  });

  it("puts notes above the live line", () => {
    const terminal = target(true);
    const progress = createProgress(terminal);
    progress.step("building");
    progress.note("built base");
    expect(terminal.text()).toBe("building\r\x1b[2Kbuilt base\nbuilding");
  });

  it("never lets the live line wrap", () => {
    const terminal = target(true, 10);
    createProgress(terminal).step("a line that is too long");
    expect(terminal.text()).toBe("a line t…");
  });

  it("shows a line whole where the terminal does not know its width", () => {
    const terminal = target(true, 0);
    createProgress(terminal).step("starting");
    expect(terminal.text()).toBe("starting");
  });

  it("writes nothing when nothing changes, and nothing on a close without a line", () => {
    const terminal = target(true);
    const progress = createProgress(terminal);
    progress.close();
    progress.step("same");
    progress.step("same");
    expect(terminal.text()).toBe("same");
  });

  it("dims the live line only when colours are wanted", () => {
    const terminal = target(true);
    createProgress(terminal, { usesColour: true }).step("busy");
    expect(terminal.text()).toBe("\x1b[2mbusy\x1b[22m");
  });

  it("shows what an engine says without obeying it", () => {
    const terminal = target(true);
    createProgress(terminal).step("layer\x1b[2J\r\nx\x07");
    expect(terminal.text()).toBe("layer␊x␇");
  });
});

describe("progress elsewhere", () => {
  it("is plain lines, each step once", () => {
    const file = target(false);
    const progress = createProgress(file, { usesColour: true });
    progress.step("pulling");
    progress.step("pulling");
    progress.note("a note");
    progress.step("starting");
    progress.close();
    expect(file.text()).toBe("pulling\na note\nstarting\n");
  });
});
