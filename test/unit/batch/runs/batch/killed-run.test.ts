import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { randomNumbers } from "../../../../../src/lib/random-numbers.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";
import { compiledFixture } from "../../../../support/compiled-fixture.js";

const program = compiledFixture("run-batch.ts");

/** Kills the run after so many events; null lets it end. Resolves to its exit code. */
async function runIn(folder: string, { seed, killAfter }: { seed: number; killAfter: number | null }) {
  const child = spawn(process.execPath, [program.path, folder, String(seed)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let events = 0;
  createInterface({ input: child.stdout }).on("line", () => {
    events++;
    if (events === killAfter) child.kill("SIGKILL");
  });
  await once(child, "close");
  return child.exitCode;
}

async function resultsOf(folder: string): Promise<unknown[]> {
  const lines = (await readFile(join(folder, "results.jsonl"), "utf8")).trimEnd().split("\n");
  return lines.toSorted().map((line) => JSON.parse(line));
}

/** The result of each attempt, and the names of its files. */
async function attemptsOf(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, "attempts"), { recursive: true });
  return names.toSorted();
}

it("a run that is killed at random moments ends with exactly the results of an undisturbed one", async () => {
  const undisturbed = await temporaryFolder();
  expect(await runIn(undisturbed, { seed: 1, killAfter: null })).toBe(0);
  const expected = await resultsOf(undisturbed);
  expect(expected).toHaveLength(40);

  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = randomNumbers(seed);
  const killed = await temporaryFolder();
  for (let kills = 0; kills < 6; kills++)
    await runIn(killed, { seed: kills, killAfter: 2 + Math.floor(random() * 25) });
  expect(await runIn(killed, { seed: 9, killAfter: null })).toBe(0);
  expect(await resultsOf(killed), `seed ${seed}`).toEqual(expected);
  expect(await attemptsOf(killed), `seed ${seed}`).toEqual(await attemptsOf(undisturbed));
});
