import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AdmissionRules,
  type Admitted,
  findExcess,
  findShortage,
  type Machine,
  type Need,
} from "../../../../../src/batch/runs/admission/admission.js";

const rules: AdmissionRules = {
  maxAtOnce: 4,
  cpuOvercommit: 2,
  reservedMemoryBytes: 1000,
  reservedDiskBytes: 500,
};
const machine: Machine = {
  cpus: 4,
  memoryBytes: 16_000,
  availableMemoryBytes: 14_000,
  freeDiskBytes: 10_000,
};
const need: Need = { cpus: 1, memoryBytes: 4000, diskBytes: 100 };
const running = (count: number, changes: Partial<Need> = {}, isYoung = false): Admitted[] =>
  Array.from({ length: count }, () => ({ need: { ...need, ...changes }, isYoung }));

describe("what keeps an attempt from starting", () => {
  it("is nothing where there is room", () => {
    expect(findShortage(need, { rules, machine, running: running(2) })).toBeNull();
  });

  it("is the number of attempts that run", () => {
    expect(findShortage(need, { rules, machine, running: running(4, { memoryBytes: 1 }) })).toEqual({
      kind: "concurrency",
      running: 4,
    });
  });

  it("is processors, of which more may be promised than there are", () => {
    const busy = running(3, { cpus: 2.5, memoryBytes: 1 });
    expect(findShortage({ ...need, cpus: 0.5 }, { rules, machine, running: busy })).toBeNull();
    expect(findShortage(need, { rules, machine, running: busy })).toEqual({
      kind: "cpus",
      needed: 1,
      left: 0.5,
    });
  });

  it("is memory that is promised to others, though they do not use it", () => {
    const idle = { ...machine, availableMemoryBytes: 16_000 };
    expect(findShortage(need, { rules, machine: idle, running: running(3) })).toEqual({
      kind: "memory",
      needed: 4000,
      left: 3000,
    });
  });

  it("is memory that others use, or that those who have just started are about to use", () => {
    const full = { ...machine, availableMemoryBytes: 4900 };
    expect(findShortage(need, { rules, machine: full, running: running(1) })).toMatchObject({ left: 3900 });
    const started = { ...machine, availableMemoryBytes: 8000 };
    expect(findShortage(need, { rules, machine: started, running: running(1) })).toBeNull();
    expect(findShortage(need, { rules, machine: started, running: running(1, {}, true) })).toMatchObject({
      kind: "memory",
      left: 3000,
    });
  });

  it("is a disk that is full, even if nothing runs", () => {
    for (const freeDiskBytes of [599, 400])
      expect(
        findShortage(need, { rules, machine: { ...machine, freeDiskBytes }, running: [] }),
      ).toMatchObject({
        kind: "disk",
        needed: 100,
        left: freeDiskBytes - 500,
      });
    const noNeed = { ...need, diskBytes: 0 };
    expect(
      findShortage(noNeed, { rules, machine: { ...machine, freeDiskBytes: 500 }, running: [] }),
    ).toMatchObject({ kind: "disk" });
  });

  it("is never anything but the disk if nothing runs, so that a run goes on", () => {
    const full = { ...machine, availableMemoryBytes: 0 };
    expect(findShortage({ ...need, cpus: 99 }, { rules, machine: full, running: [] })).toBeNull();
  });

  it("is no number that is not known, as of an engine on another machine", () => {
    const far = { ...machine, availableMemoryBytes: null, freeDiskBytes: null };
    expect(findShortage(need, { rules, machine: far, running: running(2, {}, true) })).toBeNull();
    expect(findShortage(need, { rules, machine: far, running: running(3) })).toMatchObject({
      kind: "memory",
    });
  });

  it("never promises more memory than the machine has, in whatever order attempts come", () => {
    const needs = fc.array(
      fc.record({ cpus: fc.nat(4), memoryBytes: fc.nat(16_000), diskBytes: fc.nat(10) }),
    );
    fc.assert(
      fc.property(needs, fc.nat(16_000), (wanted, availableMemoryBytes) => {
        const admitted: Admitted[] = [];
        for (const one of wanted) {
          const state = { rules, machine: { ...machine, availableMemoryBytes }, running: admitted };
          if (findShortage(one, state) === null) admitted.push({ need: one, isYoung: false });
        }
        const promised = admitted.reduce((sum, one) => sum + one.need.memoryBytes, 0);
        expect(promised).toBeLessThanOrEqual(machine.memoryBytes);
        expect(admitted.length).toBeLessThanOrEqual(rules.maxAtOnce);
      }),
    );
  });
});

describe("what the whole machine lacks", () => {
  it("is told with both numbers", () => {
    expect(findExcess({ ...need, cpus: 5 }, machine)).toEqual({ kind: "cpus", needed: 5, left: 4 });
    expect(findExcess({ ...need, memoryBytes: 16_001 }, machine)).toMatchObject({
      kind: "memory",
      left: 16_000,
    });
    expect(findExcess({ ...need, cpus: 4, memoryBytes: 16_000 }, machine)).toBeNull();
  });
});
