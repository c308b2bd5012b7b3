import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ChangesWork } from "../../../src/command/changes-work.js";
import { testContext } from "../../support/cli-context.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const MIB = 1024 ** 2;

it("says what is done and for how long already, once that is more than two seconds", () => {
  const context = testContext({ isTerminal: true });
  {
    using _quick = new ChangesWork(context, "applying the changes");
    vi.advanceTimersByTime(1500);
  }
  expect(context.written().stderr).toBe("");
  {
    using _long = new ChangesWork(context, "copying the workspace of one");
    vi.advanceTimersByTime(4000);
  }
  const { stdout, stderr } = context.written();
  expect(stdout).toBe("");
  expect(stderr).toContain("copying the workspace of one, 4.0 s");
  expect(stderr.endsWith("\r\x1b[2K")).toBe(true);
});

it("says how many small files are copied and when that may end, and after the last one for how long it takes", () => {
  const context = testContext({ isTerminal: true });
  const totals = { totalFiles: 1000, totalBytes: 5000 };
  using work = new ChangesWork(context, "applying the changes");
  work.onCopied({ files: 0, bytes: 0, ...totals });
  vi.advanceTimersByTime(4000);
  work.onCopied({ files: 100, bytes: 500, ...totals });
  vi.advanceTimersByTime(1000);
  const shown = context.written().stderr;
  expect(shown).toContain("applying the changes, 0 of 1000 files");
  expect(shown).toContain("applying the changes, 100 of 1000 files, about 30 s left");
  work.onCopied({ files: 1000, bytes: 5000, ...totals });
  vi.advanceTimersByTime(1000);
  expect(context.written().stderr).toContain("applying the changes, 6.0 s");
});

it("says of large files how many bytes are copied", () => {
  const context = testContext({ isTerminal: true });
  using work = new ChangesWork(context, "applying the changes");
  work.onCopied({ files: 0, bytes: 10 * MIB, totalFiles: 2, totalBytes: 200 * MIB });
  vi.advanceTimersByTime(3000);
  expect(context.written().stderr).toContain("applying the changes, 10 MiB of 200 MiB");
});

it("says of copied files how many have their names, and what is waited for while nothing can be counted", () => {
  const context = testContext({ isTerminal: true });
  const placing = { bytes: 0, totalFiles: 1000, totalBytes: 0, phase: "placing" } as const;
  using work = new ChangesWork(context, "applying the changes");
  work.onCopied({ files: 1000, bytes: 5000, totalFiles: 1000, totalBytes: 5000 });
  vi.advanceTimersByTime(3000);
  expect(context.written().stderr).toContain("applying the changes, 3.0 s");
  work.onCopied({ files: 0, ...placing });
  vi.advanceTimersByTime(3000);
  work.onCopied({ files: 200, ...placing });
  vi.advanceTimersByTime(1000);
  const shown = context.written().stderr;
  expect(shown).toContain("applying the changes, putting the files in place, 6.0 s");
  expect(shown).toContain("applying the changes, 200 of 1000 files in place, about 10 s left");
  work.onCopied({ files: 1000, ...placing });
  vi.advanceTimersByTime(1000);
  expect(context.written().stderr).toContain("applying the changes, putting the files in place, 8.0 s");
});

it("says that a restore point is taken first, and how much of it is stored, with an estimate of its own", () => {
  const context = testContext({ isTerminal: true });
  const none = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0 };
  const point = { bytes: 0, totalFiles: 40, totalBytes: 0, phase: "waiting" } as const;
  using work = new ChangesWork(context, "taking back");
  work.onCopied({ ...none, phase: "waiting" });
  vi.advanceTimersByTime(3000);
  work.onCopied({ files: 0, ...point });
  vi.advanceTimersByTime(3000);
  work.onCopied({ files: 10, ...point });
  vi.advanceTimersByTime(1000);
  const shown = context.written().stderr;
  expect(shown).toContain("taking back, waiting for a restore point, 3.0 s");
  expect(shown).toContain("taking back, waiting for a restore point, 10 of 40 files, about 10 s left");
  work.onCopied(none);
  vi.advanceTimersByTime(1000);
  expect(context.written().stderr).toContain("taking back, 8.0 s");
  work.onCopied({ ...none, totalFiles: 4 });
  vi.advanceTimersByTime(1000);
  expect(context.written().stderr).toContain("taking back, 0 of 4 files\u001b");
});
