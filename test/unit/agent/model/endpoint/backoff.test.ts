import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  retryAfterInMessage,
  retryAfterOf,
  retryDelayMs,
} from "../../../../../src/agent/model/endpoint/backoff.js";

describe("retryDelayMs", () => {
  it("doubles from 200 ms, ten percent more or less", () => {
    const delays = (random: number) =>
      [1, 2, 3, 4].map((attempt) => retryDelayMs(attempt, { retryAfterMs: null, random: () => random }));
    expect(delays(0.5)).toEqual([200, 400, 800, 1600]);
    expect(delays(0)).toEqual([180, 360, 720, 1440]);
    expect(retryDelayMs(1, { retryAfterMs: null, random: () => 0.9999 })).toBeCloseTo(220, 1);
  });

  it("is what the endpoint asks for, up to ten minutes", () => {
    const random = () => 0.5;
    expect(retryDelayMs(3, { retryAfterMs: 7, random })).toBe(7);
    expect(retryDelayMs(3, { retryAfterMs: 1e12, random })).toBe(600_000);
  });

  it("is the usual one where the endpoint asks for a number that is none", () => {
    expect(retryAfterOf(new Headers({ "retry-after": "9".repeat(400) }), 0)).toBeNull();
    expect(retryAfterOf(new Headers({ "retry-after-ms": "9".repeat(400) }), 0)).toBeNull();
    expect(retryAfterOf(new Headers({ "retry-after": "1e12" }), 0)).toBeNull();
  });

  it("is never negative and never endless", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, r) => {
          const delay = retryDelayMs(attempt, { retryAfterMs: null, random: () => r });
          expect(delay).toBeGreaterThanOrEqual(180);
          expect(delay).toBeLessThanOrEqual(660_000);
        },
      ),
    );
  });
});

describe("retryAfterOf", () => {
  const now = Date.parse("2026-11-20T10:00:00Z");

  it.each([
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "Fri, 20 Nov 2026 10:00:30 GMT" }, 30_000],
    [{ "retry-after": "Fri, 20 Nov 2026 09:00:00 GMT" }, 0],
    [{ "retry-after-ms": "40", "retry-after": "2" }, 40],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "-3" }, null],
    [{}, null],
  ])("reads %j as %j", (headers, expected) => {
    expect(retryAfterOf(new Headers(headers), now)).toBe(expected);
  });
});

describe("retryAfterInMessage", () => {
  it.each([
    ["Please try again in 1.5s.", 1500],
    ["Try again in 20ms", 20],
    ["try again in 3 seconds", 3000],
    ["try again in 1 second", 1000],
    ["try again in a while", null],
    ["try again in 5 minutes", null],
  ])("reads %j as %j", (message, expected) => {
    expect(retryAfterInMessage(message)).toBe(expected);
  });
});
