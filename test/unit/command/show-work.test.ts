import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { showWork } from "../../../src/command/show-work.js";
import { testContext } from "../../support/cli-context.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it("says what is done and for how long already, once that is more than two seconds", () => {
  const context = testContext({ isTerminal: true });
  {
    using _quick = showWork(context, "applying the changes");
    vi.advanceTimersByTime(1500);
  }
  expect(context.written().stderr).toBe("");
  {
    using _long = showWork(context, "copying the workspace of one");
    vi.advanceTimersByTime(4000);
  }
  const { stdout, stderr } = context.written();
  expect(stdout).toBe("");
  expect(stderr).toContain("copying the workspace of one, 4.0 s");
  expect(stderr.endsWith("\r\x1b[2K")).toBe(true);
});
