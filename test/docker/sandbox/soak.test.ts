import { readdir } from "node:fs/promises";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import type { ExecResult } from "../../../src/sandbox/sandbox-types.js";
import { promised } from "../../guarantees.js";
import { heldBytes } from "../../support/garbage.js";
import { randomNumbers } from "../../support/random.js";
import { differs } from "../../support/runtime-differences.js";
import { isWatched, sandboxTest } from "../../support/sandbox.js";

interface Call {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** A call of random size and exit code, with a mark of its own at both ends of each stream. */
function makeCall(index: number, random: () => number): Call {
  const size = random() < 0.02 ? 100_000 : Math.floor(random() ** 3 * 8000);
  const filling = "abcdefghij".repeat(size / 10);
  return {
    stdout: `<${index}${filling}${index}>`,
    stderr: `!${index}${random() < 0.5 ? filling.slice(0, 300) : ""}`,
    exitCode: Math.floor(random() * 256),
  };
}

async function make(sandbox: Sandbox, { stdout, stderr, exitCode }: Call): Promise<ExecResult> {
  const script = 'printf %s "$1"; printf %s "$2" >&2; exit "$3"';
  return await sandbox.exec(["sh", "-c", script, "sh", stdout, stderr, String(exitCode)]);
}

function isRight(call: Call, result: ExecResult): boolean {
  return (
    result.stdout === call.stdout &&
    result.stderr === call.stderr &&
    result.exitCode === call.exitCode &&
    result.signal === null &&
    !result.truncated
  );
}

/** Makes calls, so many at a time, and returns those whose result was not exactly right. */
async function soak(sandbox: Sandbox, calls: Generator<Call>, atATime: number): Promise<Call[]> {
  const wrong: Call[] = [];
  const workers = Array.from({ length: atATime }, async () => {
    for (const call of calls) if (!isRight(call, await make(sandbox, call))) wrong.push(call);
  });
  await Promise.all(workers);
  return wrong;
}

const openDescriptors = async () => (await readdir("/proc/self/fd")).length;

const callCount = differs("soak.calls") ? 1500 : 10_000;

describe(`${callCount} short calls`, () => {
  const seed = Number(process.env.BRIG_TEST_SEED ?? Date.now() % 1_000_000);
  const random = randomNumbers(seed);
  // Made one by one: what a test holds itself it would find in the memory that has grown.
  function* callsFrom(first: number, end: number): Generator<Call> {
    for (let index = first; index < end; index++) yield makeCall(index, random);
  }

  sandboxTest(
    promised("kept.output", `no lost byte, no wrong code, nothing that grows (seed ${seed})`),
    async ({ sandbox }) => {
      await soak(sandbox, callsFrom(0, 200), 16);
      const descriptors = await openDescriptors();
      const held = heldBytes();

      expect(await soak(sandbox, callsFrom(200, callCount * 0.3), 1)).toEqual([]);
      expect(await soak(sandbox, callsFrom(callCount * 0.3, callCount), 16)).toEqual([]);

      expect(await openDescriptors()).toBeLessThanOrEqual(descriptors);
      expect(heldBytes() - held).toBeLessThan(4 * 1024 * 1024);
      const { stdout: runnerKilobytes } = await sandbox.exec(["ps", "-o", "rss=", "-p", "1"]);
      // A sanitizer's quarantine is not the runner's, but it has an end too.
      expect(Number(runnerKilobytes)).toBeLessThan((isWatched ? 64 : 8) * 1024);
    },
    15 * 60_000,
  );
});
