import { expect, it } from "vitest";
import { exitStatusOf } from "../../../src/cli/exit-status.js";
import { BrigError, type ErrorCode } from "../../../src/errors.js";

it.each<[ErrorCode, number]>([
  ["usage.invalid", 2],
  ["config.invalid", 2],
  ["policy.invalid", 2],
  ["engine.unreachable", 125],
  ["engine.too-old", 125],
  ["policy.not-enforced", 125],
  ["model.script", 1],
  ["aborted", 130],
])("%s exits with %d", (code, status) => {
  expect(exitStatusOf(new BrigError("x", { code }))).toBe(status);
});

it("a fault of brig's own exits with 125", () => {
  expect(exitStatusOf(new TypeError("x"))).toBe(125);
  expect(exitStatusOf("x")).toBe(125);
});
