import { expect, it } from "vitest";
import { timeAllowed } from "../../../../../src/batch/runs/processors.js";

it("a time limit is extended only by the share that was asked for", () => {
  expect(timeAllowed(60)).toEqual({ limitMs: 60_000, maxExtensionMs: 0 });
  expect(timeAllowed(60, 0.5)).toEqual({ limitMs: 60_000, maxExtensionMs: 30_000 });
  expect(timeAllowed(null, 1)).toEqual({ limitMs: null, maxExtensionMs: 0 });
});
