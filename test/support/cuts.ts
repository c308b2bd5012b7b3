import { randomNumbers } from "./random.js";

const SAMPLED = 24;

/**
 * At which bytes a test cuts off an input of this length: around the places where something is decided, and at others drawn by a seed that is
 * another one each time, unless BRIG_TEST_SEED names it. In `npm run test:deep` at every byte. A failure must print the seed.
 */
export function someCuts(length: number, decisive: readonly number[]): { cuts: number[]; seed: number } {
  const seed = Number(process.env.BRIG_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  const every = Array.from({ length: length + 1 }, (_, at) => at);
  if (process.env.BRIG_TEST_DEEP === "1") return { cuts: every, seed };
  const random = randomNumbers(seed);
  const drawn = Array.from({ length: SAMPLED }, () => Math.floor(random() * (length + 1)));
  const wanted = new Set([0, length, ...drawn, ...decisive.flatMap((at) => [at - 1, at, at + 1])]);
  return { cuts: every.filter((at) => wanted.has(at)), seed };
}
