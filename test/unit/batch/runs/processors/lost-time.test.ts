import { describe, expect, it } from "vitest";
import { lostTimeMs, type ProcessorTimes } from "../../../../../src/batch/runs/processors.js";

const start: ProcessorTimes = { atMs: 0, usedMs: 0, waitedMs: 0, machineMs: 0, processors: 2 };

/** What one second with these differences cost. */
function lost(differences: Partial<ProcessorTimes>): number {
  return Math.round(lostTimeMs(start, { ...start, atMs: 1000, ...differences }));
}

describe("the time that a container lost to others", () => {
  it("is the time for which its only thread waited", () => {
    expect(lost({ usedMs: 250, waitedMs: 750, machineMs: 2000 })).toBe(750);
    expect(lost({ usedMs: 100, waitedMs: 50, machineMs: 2000 })).toBe(50);
  });

  it("is nothing for a container that sleeps while others work", () => {
    expect(lost({ machineMs: 2000 })).toBe(0);
  });

  it("does not count several times what threads waited at the same time", () => {
    expect(lost({ usedMs: 1000, waitedMs: 1000, machineMs: 2000 })).toBe(500);
  });

  it("does not count that 500 threads waited for each other", () => {
    expect(lost({ usedMs: 2000, waitedMs: 498_000, machineMs: 2000 })).toBe(0);
  });

  it("does not count waiting because of the container's own limit", () => {
    expect(lost({ processors: 0.5, usedMs: 500, waitedMs: 500, machineMs: 2000 })).toBe(0);
    expect(lost({ processors: 0.5, usedMs: 250, waitedMs: 750, machineMs: 2000 })).toBe(500);
  });

  it("is no more than what others used, so that threads tied to one processor gain nothing on an idle machine", () => {
    expect(lost({ usedMs: 1000, waitedMs: 499_000, machineMs: 1000 })).toBe(0);
    expect(lost({ usedMs: 1000, waitedMs: 499_000, machineMs: 1200 })).toBe(100);
  });

  it("is never more than has passed, nor less than nothing", () => {
    expect(lost({ processors: 0.1, usedMs: 0, waitedMs: 9_000_000, machineMs: 9_000_000 })).toBe(1000);
    expect(lost({ usedMs: -5, waitedMs: 5000, machineMs: 5000 })).toBe(0);
    expect(lost({ usedMs: 100, waitedMs: 900, machineMs: 50 })).toBe(0);
    expect(lostTimeMs(start, start)).toBe(0);
  });
});
