import { shuffled } from "../../src/lib/random-numbers.js";
import { runs } from "./fuzz.js";
import { randomNumbers } from "./random.js";

/**
 * Some of the values, other ones each time: few in `npm test`, many in `npm run test:deep`. A failure has to print the seed, with which
 * BRIG_TEST_SEED takes the same ones again.
 */
export function sampled<T>(
  all: readonly T[],
  counts: { short: number; deep: number },
): { seed: number; some: T[] } {
  const seed = Number(process.env.BRIG_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  return { seed, some: shuffled(all, randomNumbers(seed)).slice(0, runs(counts)) };
}
