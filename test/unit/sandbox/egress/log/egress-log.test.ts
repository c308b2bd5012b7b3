import { describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../../src/sandbox/egress/attempt.js";
import type { EgressEntry } from "../../../../../src/sandbox/egress/log/egress-entry.js";
import {
  EgressLog,
  MAX_ENTRIES,
  MAX_KINDS,
  mergedEntries,
} from "../../../../../src/sandbox/egress/log/egress-log.js";

function attempt(given: Partial<EgressAttempt> = {}): EgressAttempt {
  return {
    ...{
      startedAtMs: 1000,
      phase: "run",
      durationMs: 2,
      way: "connect",
      host: "a.example",
      port: 443,
      method: null,
      path: null,
    },
    ...{ outcome: { kind: "allowed" }, rule: "a.example", bytesOut: 10, bytesIn: 20 },
    owner: { channel: 3, pid: 5, program: "curl", callId: "call_1" },
    ...given,
  };
}

function opened() {
  const entries: EgressEntry[] = [];
  return { entries, log: new EgressLog((entry) => entries.push(entry)) };
}

describe("the log of attempts", () => {
  it("has the first of a kind at once, with the call and the program that made it", () => {
    const { entries, log } = opened();
    log.add(attempt());
    expect(entries).toEqual([
      {
        ...{
          startedAtMs: 1000,
          phase: "run",
          count: 1,
          callId: "call_1",
          program: "curl",
          way: "connect",
          host: "a.example",
        },
        ...{ port: 443, method: null, path: null, outcome: "allowed", reason: null, message: null },
        ...{ rule: "a.example", bytesOut: 10, bytesIn: 20, durationMs: 2 },
      },
    ]);
  });

  it("says why something was denied or failed", () => {
    const { entries, log } = opened();
    log.add(attempt({ outcome: { kind: "denied", denial: { kind: "no-rule" } } }));
    log.add(attempt({ outcome: { kind: "failed", errno: "ECONNREFUSED" } }));
    expect(entries).toMatchObject([
      { outcome: "denied", reason: "no-rule", message: expect.stringContaining("a.example:443") },
      { outcome: "failed", reason: "ECONNREFUSED" },
    ]);
  });

  it("keeps thousands of equal attempts in a few entries that add up", () => {
    const { entries, log } = opened();
    for (let i = 0; i < 10_000; i++) log.add(attempt({ startedAtMs: 1000 + i }));
    log.flush();
    // The first two, one for each time that their number has doubled, and the rest.
    expect(entries.length).toBeLessThan(20);
    expect(mergedEntries(entries)).toMatchObject([
      { startedAtMs: 1000, count: 10_000, bytesOut: 100_000, bytesIn: 200_000 },
    ]);
    log.flush();
    expect(mergedEntries(entries)).toMatchObject([{ count: 10_000 }]);
  });

  it("only counts by their outcome what differs too much, and loses none", () => {
    const { entries, log } = opened();
    const count = 4 * MAX_KINDS;
    for (let i = 0; i < count; i++) log.add(attempt({ host: `h${i}.example` }));
    log.add(attempt({ host: "h0.example" }));
    log.flush();
    expect(entries.length).toBeLessThan(MAX_KINDS + 30);
    const merged = mergedEntries(entries);
    expect(merged.find(({ host }) => host === "h0.example")?.count).toBe(2);
    expect(merged.find(({ host }) => host === null)).toMatchObject({
      ...{ count: count - MAX_KINDS, outcome: "allowed", callId: null, program: null },
    });
  });

  it("is bounded for a program that mixes what it repeats with flushes in between", () => {
    const { entries, log } = opened();
    for (let turn = 0; turn < 40; turn++) {
      for (let i = 0; i < 200; i++) {
        const varied = attempt({ host: `h${i}.example` });
        for (let again = 0; again < 3; again++) log.add(varied);
      }
      log.flush();
    }
    expect(entries.length).toBeLessThan(MAX_ENTRIES + MAX_KINDS + 300);
    expect(entries.reduce((sum, { count }) => sum + count, 0)).toBe(40 * 200 * 3);
  });

  it("holds hosts and paths to 300 printable characters", () => {
    const { entries, log } = opened();
    const hostile = `\u001b[2Jevil\u202e${"x".repeat(10_000)}`;
    log.add(attempt({ host: hostile, method: "GET", path: `/${hostile}` }));
    const [{ host, path, message }] = entries as [EgressEntry];
    for (const text of [host, path]) expect(text).toMatch(/^[\x21-\x7e]{300}…$/);
    expect(message ?? "").not.toMatch(/[^\x20-\x7e…]/);
  });
});
