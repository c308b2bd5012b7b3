import { describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../../src/sandbox/index.js";
import { CommandLog, commandText } from "../../../../../src/services/serve/sandboxes/command-log.js";
import { EgressCounts } from "../../../../../src/services/serve/sandboxes/egress-counts.js";
import { heldBytes } from "../../../../support/garbage.js";

describe("the commands of a sandbox", () => {
  const ended = { exitCode: 3, signal: null, timedOut: false };

  it("are known while they run, and how they have ended, also if that was an error", async () => {
    const log = new CommandLog();
    const { promise, resolve, reject } = deferred();
    const failing = deferred();
    const running = log.noted(["sleep", "1"], promise);
    const failed = log.noted(["broken"], failing.promise);
    expect(log.runningCount).toBe(2);
    expect(log.list().map(({ text, end }) => [text, end])).toEqual([
      ["sleep 1", null],
      ["broken", null],
    ]);
    resolve(ended);
    expect(await running).toBe(ended);
    failing.reject(new Error("gone"));
    await expect(failed).rejects.toThrow("gone");
    expect(log.runningCount).toBe(0);
    expect(log.list().map(({ text, end }) => [text, end?.exitCode])).toEqual([
      ["sleep 1", 3],
      ["broken", null],
    ]);
    reject(new Error("never heard"));
  });

  it("are forgotten but for the latest 50", async () => {
    const log = new CommandLog();
    for (let at = 0; at < 120; at++) await log.noted([`${at}`], Promise.resolve(ended));
    expect(log.list().map(({ text }) => text)).toEqual(Array.from({ length: 50 }, (_, at) => `${at + 70}`));
  });

  it("hold nothing of arguments that are cut", async () => {
    const log = new CommandLog();
    const before = heldBytes();
    for (let at = 0; at < 50; at++)
      await log.noted(["sh", `${at}`.repeat(1024 * 1024)], Promise.resolve(ended));
    expect(heldBytes() - before).toBeLessThan(8 * 1024 * 1024);
    expect(log.list().map(({ text }) => text.length)).toEqual(Array.from({ length: 50 }, () => 401));
  });

  it.each([
    [["echo", "a b", "$x"], "echo 'a b' '$x'"],
    [[""], "''"],
    [["x".repeat(500)], `${"x".repeat(400)}…`],
    [Array.from({ length: 4096 }, () => "arg"), `${"arg ".repeat(100)}…`],
  ])("as a shell would take them: %#", (argv, text) => {
    expect(commandText(argv)).toBe(text);
  });
});

describe("the connections of a sandbox", () => {
  const attempt = (host: string, outcome: EgressAttempt["outcome"], startedAtMs = 1): EgressAttempt => ({
    ...{
      startedAtMs,
      phase: "run",
      durationMs: 1,
      way: "connect",
      host,
      port: 443,
      method: null,
      path: null,
    },
    ...{ outcome, rule: null, bytesOut: 0, bytesIn: 0, owner: null },
  });
  const refused = { kind: "denied", denial: { kind: "no-rule" } } as EgressAttempt["outcome"];

  it("are counted for each host, the latest first", () => {
    const counts = new EgressCounts();
    counts.add(attempt("a.example", { kind: "allowed" }, 5));
    counts.add(attempt("b.example", refused, 7));
    counts.add(attempt("b.example", refused, 6));
    counts.add(attempt("a.example", { kind: "failed", errno: "ECONNREFUSED" }, 2));
    expect(counts.totals).toEqual({ allowed: 1, refused: 2, failed: 1 });
    expect(counts.list()).toEqual([
      { host: "b.example:443", allowed: 0, refused: 2, failed: 0, latestAtMs: 7 },
      { host: "a.example:443", allowed: 1, refused: 0, failed: 1, latestAtMs: 5 },
    ]);
  });

  it("to more hosts than are kept apart are counted together", () => {
    const counts = new EgressCounts();
    for (let at = 0; at < 10_000; at++) counts.add(attempt(`${at}.${"x".repeat(5000)}`, refused, at));
    const listed = counts.list();
    expect(listed).toHaveLength(201);
    expect(listed[0]).toEqual({ host: null, allowed: 0, refused: 9800, failed: 0, latestAtMs: 9999 });
    expect(Math.max(...listed.map(({ host }) => host?.length ?? 0))).toBeLessThan(320);
    expect(counts.totals.refused).toBe(10_000);
  });
});

interface Deferred {
  promise: Promise<{ exitCode: number; signal: null; timedOut: boolean }>;
  resolve: (value: { exitCode: number; signal: null; timedOut: boolean }) => void;
  reject: (error: Error) => void;
}

function deferred(): Deferred {
  const made: Partial<Deferred> = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made as Deferred;
}
