import { describe, expect, it } from "vitest";
import { describeError, errorAsJson } from "../../../src/command/error-text.js";
import { BrigError } from "../../../src/errors.js";

const shortly = { showsCauses: false };

describe("describeError", () => {
  it("says what is wrong and what to do", () => {
    const error = new BrigError("no engine answers", {
      code: "engine.unreachable",
      hint: "try: docker info",
    });
    expect(describeError(error, shortly)).toBe("brig: no engine answers\nhint: try: docker info\n");
  });

  it("leaves out a hint that is not there", () => {
    expect(describeError(new BrigError("no", { code: "engine.failed" }), shortly)).toBe("brig: no\n");
  });

  it("calls anything else a fault of brig's own", () => {
    const text = describeError(new TypeError("x is undefined"), shortly);
    expect(text).toMatch(/^brig: x is undefined\nhint: this is a bug in brig/);
    expect(describeError("thrown text", shortly)).toMatch(/^brig: thrown text\n/);
  });

  it("lets nothing in the message act on the terminal", () => {
    const error = new BrigError("no file \x1b[2J\x1b]0;x\x07\u202etxt", {
      code: "file.not-found",
      hint: "\x07",
    });
    expect(describeError(error, shortly)).toBe("brig: no file <U+202E>txt\nhint: ␇\n");
  });

  it("shows the chain of causes on request, and ends when it bites its tail", () => {
    const first = new Error("connect ENOENT");
    const error = new BrigError("no engine", { code: "engine.unreachable", cause: first });
    first.cause = error;
    const text = describeError(error, { showsCauses: true });
    expect(text).toMatch(/^brig: no engine\n/);
    expect(text.match(/caused by: /g)).toHaveLength(1);
    expect(text).toContain("caused by: Error: connect ENOENT");
    expect(text).toMatch(/at .*errors\.test/);
  });

  it("shows causes that are no errors", () => {
    const error = new BrigError("no", { code: "engine.failed", cause: "EPERM" });
    expect(describeError(error, { showsCauses: true })).toMatch(/caused by: EPERM\n$/);
  });
});

describe("errorAsJson", () => {
  it("carries the code, the message, the hint and the reason", () => {
    const error = new BrigError("gone", { code: "sandbox.gone", hint: "again", reason: "oom" });
    expect(errorAsJson(error)).toEqual({
      error: { code: "sandbox.gone", message: "gone", hint: "again", reason: "oom" },
    });
  });

  it("gives anything else the code internal", () => {
    expect(errorAsJson(new TypeError("x"))).toEqual({ error: { code: "internal", message: "x" } });
  });
});
