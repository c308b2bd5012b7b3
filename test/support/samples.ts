import { shuffled } from "../../src/lib/random/random-numbers.js";
import { randomNumbers } from "./random.js";

const isDeep = process.env.BRIG_TEST_DEEP === "1";

/**
 * In `npm test` so many of the values, other ones each time; in `npm run test:deep` all of them. A failure has to print the seed, with which
 * BRIG_TEST_SEED takes the same ones again.
 */
export function sampled<T>(all: readonly T[], count: number): { seed: number; some: T[] } {
  const seed = Number(process.env.BRIG_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  return { seed, some: isDeep ? [...all] : shuffled(all, randomNumbers(seed)).slice(0, count) };
}
