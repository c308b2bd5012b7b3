import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parsePressure, parseStat } from "../../../../../src/batch/runs/processors.js";

describe("what the kernel says about processors", () => {
  it("is read of this machine", () => {
    const stat = parseStat(readFileSync("/proc/stat", "utf8"));
    expect(stat?.processors).toBeGreaterThan(0);
    expect(stat?.usedMs).toBeGreaterThan(0);
  });

  it("leaves out idle time, and the time of guests, which is counted already", () => {
    const text =
      "cpu  10 20 30 1000 5000 1 2 3 7 0\ncpu0 5 10 15 500 2500 1 1 1 7 0\ncpu1 5 10 15 500 2500 0 1 2 0 0\nintr 5\n";
    expect(parseStat(text)).toEqual({ usedMs: 660, processors: 2 });
  });

  it("is unknown where /proc/stat is not the kernel's", () => {
    for (const text of ["", "cpu  x\ncpu0 1\n", "cpu  1 2 3\n", `cpu  ${"9".repeat(40)}\ncpu0 1\n`])
      expect(parseStat(text)).toBeNull();
  });

  it("is, of pressure, the time for which at least one process waited", () => {
    const text =
      "some avg10=6.93 avg60=1.97 avg300=2.23 total=38613498\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
    expect(parsePressure(text)).toBe(38_613.498);
    expect(parsePressure("")).toBeNull();
  });
});
