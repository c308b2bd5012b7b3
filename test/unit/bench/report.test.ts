import { describe, expect, it } from "vitest";
import { compare, quantity } from "../../bench/bench.js";
import type { Machine } from "../../bench/machine.js";
import { reportAsText } from "../../bench/report.js";

const machine: Machine = {
  measuredAt: "2026-11-20T12:00:00.000Z",
  cpu: "a processor",
  cores: 2,
  memoryBytes: 1e9,
  kernel: "Linux 6.1",
  node: "v20.19.0",
  engine: "docker 20.10.24",
  runtime: "runc",
  load: { before: 0.1, after: 1.2 },
};

const ours = { name: "ours", rounds: [[2], [2]] };
const rival = { name: "rival", rounds: [[40], [40]] };

describe("a comparison", () => {
  it("divides the rival by us where being faster is the point", () => {
    const row = compare(ours, rival, {
      title: "speed",
      unit: "ms",
      direction: "rival / ours",
      target: { kind: "at-least", value: 20 },
    });
    expect([row.ratio.value, row.isMet]).toEqual([20, true]);
  });

  it("divides us by the rival where not being slower is the point", () => {
    const row = compare(rival, ours, {
      title: "cost",
      unit: "ms",
      direction: "ours / rival",
      target: { kind: "at-most", value: 19.9 },
    });
    expect([row.ratio.value, row.isMet]).toEqual([20, false]);
  });

  it("is of the slowest twentieths where nobody may wait long", () => {
    const slow = { name: "slow", rounds: [[...Array<number>(18).fill(1), 30, 30]] };
    const even = { name: "even", rounds: [Array<number>(20).fill(2)] };
    const asked = { title: "wait", unit: "ms", direction: "ours / rival", judged: "p95" } as const;
    const row = compare(slow, even, { ...asked, target: { kind: "at-most", value: 3 } });
    expect([row.ratio.value, row.isMet]).toEqual([15, false]);
    const measured = { machine, isQuick: false, runtime: null };
    const text = reportAsText({ ...measured, benches: [{ name: "one", rows: [row], failure: null }] });
    expect(text).toMatch(/^wait .* p95 × 15\.0 /m);
  });

  it("is neither met nor missed without a target", () => {
    expect(compare(ours, rival, { title: "", unit: "ms", direction: "ours / rival" }).isMet).toBeNull();
  });
});

describe("a quantity", () => {
  it("is judged by its largest sample where one outlier is too many", () => {
    const samples = { name: "memory", values: [1, 1, 1, 33] };
    const target = { kind: "at-most", value: 32 } as const;
    expect(quantity(samples, { title: "", unit: "MB", target }).isMet).toBe(true);
    expect(quantity(samples, { title: "", unit: "MB", judged: "max", target }).isMet).toBe(false);
    expect(quantity(samples, { title: "", unit: "MB", judged: "p95", target }).isMet).toBe(true);
  });
});

describe("the report as text", () => {
  const rows = [
    compare(ours, rival, {
      title: "speed",
      unit: "ms",
      direction: "rival / ours",
      target: { kind: "at-least", value: 50 },
    }),
    quantity({ name: "disk", values: [104.4] }, { title: "size", unit: "kB" }),
  ];
  const report = { machine, isQuick: false, runtime: null };

  it("shows both sides of a comparison, the ratio, its interval and the verdict", () => {
    const text = reportAsText({ ...report, benches: [{ name: "one", rows, failure: null }] });
    expect(text).toMatch(
      /^speed +ours +2 +2\.00 +2\.00 +2\.00 +2\.00 +ms +× 20\.0 +20\.0 – 20\.0 +≥ 50 +missed$/m,
    );
    expect(text).toMatch(/^rival \/ ours +rival +2 +40\.0 +40\.0 +40\.0 +40\.0 +ms$/m);
    expect(text).toMatch(/^size +disk +1 +104 +104 +104 +104 +kB$/m);
    expect(text).toContain("0 of 1 targets met.");
  });

  it("says which bench failed and why", () => {
    const benches = [{ name: "two", rows: [], failure: "Error: no engine\n    at somewhere" }];
    expect(reportAsText({ ...report, benches })).toContain("two failed: Error: no engine\n");
  });

  it("warns that a quick run is not to be quoted", () => {
    expect(reportAsText({ ...report, isQuick: true, benches: [] })).toContain("too few samples");
  });
});
