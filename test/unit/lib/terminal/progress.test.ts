import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createProgress, LongWork } from "../../../../src/lib/terminal/progress.js";
import { Screen } from "../../../support/screen.js";

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

  it.each(["", "a line\n", "half a line", "x".repeat(20), "x".repeat(25)])(
    "draws over nothing of the output before it: %j",
    async (output) => {
      const screen = new Screen({ rows: 6, cols: 20 });
      const terminal = target(true, 20);
      const progress = createProgress(terminal, { followsOutput: true });
      await screen.write(output.replace("\n", "\r\n"));
      progress.step("storing");
      await screen.write(terminal.text());
      const seen = () => screen.rows.map((row) => row.trimEnd()).filter((row) => row !== "");
      const printed = output.trimEnd().match(/.{1,20}/g) ?? [];
      expect(seen()).toEqual([...printed, "storing"]);
      const drawn = terminal.text().length;
      progress.step("stored");
      progress.close();
      await screen.write(terminal.text().slice(drawn));
      expect(seen()).toEqual(printed);
      expect(screen.cursor).toEqual({ row: printed.length, column: 0 });
    },
  );

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

describe("work that takes long", () => {
  /** A clock for both timers and `performance.now`. */
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is not shown within two seconds", () => {
    const terminal = target(true);
    {
      using _work = new LongWork(terminal, () => "copying");
      vi.advanceTimersByTime(1900);
    }
    vi.advanceTimersByTime(60_000);
    expect(terminal.text()).toBe("");
  });

  it("is a live line on a terminal, which is removed in the end", () => {
    const terminal = target(true);
    let done = 0;
    {
      using _work = new LongWork(terminal, () => `copied ${done}`);
      vi.advanceTimersByTime(2500);
      done = 7;
      vi.advanceTimersByTime(500);
    }
    expect(terminal.text()).toBe("copied 0\r\x1b[2Kcopied 7\r\x1b[2K");
  });

  it("is a plain line every ten seconds elsewhere", () => {
    const file = target(false);
    const beganAt = performance.now();
    {
      using _work = new LongWork(file, (now) => `at ${Math.round((now - beganAt) / 1000)}`);
      vi.advanceTimersByTime(25_000);
    }
    expect(file.text()).toBe("at 2\nat 12\nat 22\n");
  });

  it("shows nothing while there is nothing to say", () => {
    const [terminal, file] = [target(true), target(false)];
    let line: string | null = "busy";
    using _live = new LongWork(terminal, () => line);
    using _plain = new LongWork(file, () => line);
    vi.advanceTimersByTime(3000);
    line = null;
    vi.advanceTimersByTime(20_000);
    expect(terminal.text()).toBe("busy\r\x1b[2K");
    expect(file.text()).toBe("busy\n");
  });
});
