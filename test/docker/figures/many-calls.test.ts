import { createCipheriv, createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { promised } from "../../guarantees.js";
import { failures, figuresSeed, isFull, printFigures, slope, times } from "../../support/figures.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { randomNumbers } from "../../support/random.js";
import { sandboxTest } from "../../support/sandbox.js";

const callCount = isFull ? 20_000 : 2_400;
const SANDBOXES = 8;
const EACH_AT_A_TIME = 3;
/** The first calls fill caches and start workers: what grows then does not go on growing. */
const WARM_UP = callCount / 8;
const SAMPLES = 40;

/** Random bytes, of which calls take pieces: making them anew for each call would take longer than the calls. */
const pool = createCipheriv("aes-128-ctr", Buffer.alloc(16, String(figuresSeed)), Buffer.alloc(16)).update(
  Buffer.alloc(4 << 20),
);

interface Call {
  sandbox: number;
  offset: number;
  sizeBytes: number;
  exitCode: number;
  /** The call's bytes go in by stdin and come back, or into a file that a command prints. */
  way: "stdin" | "file";
}

interface Wrong extends Call {
  got: string;
}

interface Sample {
  calls: number;
  memoryBytes: number;
  descriptors: number;
}

describe(`${callCount} calls over ${SANDBOXES} sandboxes (seed ${figuresSeed})`, () => {
  sandboxTest(
    promised("kept.output", "lose no byte and no exit code"),
    async ({ open }) => {
      const sandboxes = await Promise.all(Array.from({ length: SANDBOXES }, () => open()));
      const queue = calls(callCount, randomNumbers(figuresSeed)).entries();
      const wrong: Wrong[] = [];
      const durations: number[] = [];
      const samples: Sample[] = [];
      let bytes = 0;
      const work = async () => {
        for (const [index, call] of queue) {
          const startedAt = performance.now();
          const got = await make(sandboxes[call.sandbox] as BreakableSandbox, call, index);
          durations.push(performance.now() - startedAt);
          bytes += call.sizeBytes;
          if (got !== "right") wrong.push({ ...call, got });
          if (durations.length % Math.floor(callCount / SAMPLES) === 0)
            samples.push(await sample(durations.length));
        }
      };
      const startedAt = performance.now();
      await Promise.all(Array.from({ length: SANDBOXES * EACH_AT_A_TIME }, work));
      const seconds = (performance.now() - startedAt) / 1000;

      const later = samples.filter((one) => one.calls > WARM_UP);
      const grown = (what: "memoryBytes" | "descriptors") =>
        slope(
          later.map((one) => one.calls / 1000),
          later.map((one) => one[what]),
        );
      const runners = await Promise.all(sandboxes.map(runnerKilobytes));
      printFigures(`Calls over ${SANDBOXES} sandboxes (seed ${figuresSeed})`, [
        failures("with a lost byte or a wrong code", wrong.length, durations.length),
        `${(bytes / 1e6).toFixed(0)} MB there and back, ${(callCount / seconds).toFixed(0)} calls a second`,
        times("a call", durations),
        `memory of the host: ${(grown("memoryBytes") / 1024).toFixed(0)} KiB more each 1000 calls, ${megabytes(samples.at(-1))} in the end`,
        `descriptors of the host: ${grown("descriptors").toFixed(2)} more each 1000 calls, ${samples.at(-1)?.descriptors} in the end`,
        `memory of the runners: ${runners.join(", ")} KiB`,
      ]);
      expect(wrong).toEqual([]);
      expect(durations).toHaveLength(callCount);
      // Each call has its streams: with one descriptor lost in a hundred calls this would be ten.
      expect(grown("descriptors")).toBeLessThan(2);
      for (const kilobytes of runners) expect(kilobytes).toBeLessThan(8 * 1024);
    },
    40 * 60_000,
  );
});

/** Most calls are small, and some are of a megabyte, over the sizes of a pipe, of a frame and of a channel's credit. */
function calls(count: number, random: () => number): Call[] {
  return Array.from({ length: count }, (_, index) => {
    const sizeBytes = Math.floor(random() < 0.02 ? random() * (1 << 20) : random() ** 4 * 65_600);
    return {
      sandbox: index % SANDBOXES,
      sizeBytes,
      offset: Math.floor(random() * (pool.length - sizeBytes)),
      exitCode: Math.floor(random() * 256),
      way: random() < 0.8 ? "stdin" : "file",
    };
  });
}

/** "right", or what was wrong. */
async function make(sandbox: Sandbox, call: Call, index: number): Promise<string> {
  const { offset, sizeBytes, exitCode, way } = call;
  const data = pool.subarray(offset, offset + sizeBytes);
  const path = `/tmp/call-${index}`;
  if (way === "file") await sandbox.files.write(path, data);
  const both = 'tee /dev/stderr; exit "$1"';
  const script = way === "file" ? `cat "$2" | ${both}` : both;
  const result = await sandbox.exec(["sh", "-c", script, "sh", String(exitCode), path], {
    ...(way === "stdin" ? { stdin: data } : {}),
    encoding: "buffer",
  });
  if (way === "file") await sandbox.files.remove(path);
  const wanted = hash(data);
  if (result.exitCode !== exitCode || result.signal !== null) return `exit code ${result.exitCode}`;
  if (hash(result.stdout) !== wanted) return `${result.stdout.length} other bytes on stdout`;
  if (hash(result.stderr) !== wanted) return `${result.stderr.length} other bytes on stderr`;
  return result.truncated ? "truncated" : "right";
}

function hash(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

async function sample(calls: number): Promise<Sample> {
  // What is garbage by now does not count: the heap is small then, and the rest of the memory is what is held outside of it.
  globalThis.gc?.();
  const descriptors = (await readdir("/proc/self/fd")).length;
  return { calls, memoryBytes: process.memoryUsage.rss(), descriptors };
}

function megabytes(one: Sample | undefined): string {
  return `${((one?.memoryBytes ?? 0) / 1e6).toFixed(0)} MB`;
}

async function runnerKilobytes(sandbox: Sandbox): Promise<number> {
  return Number((await sandbox.exec(["ps", "-o", "rss=", "-p", "1"])).stdout);
}
