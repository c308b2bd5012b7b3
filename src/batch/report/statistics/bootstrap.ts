import { randomNumbers } from "../../../lib/random/random-numbers.js";
import { type Estimate, mean, meanReward, withoutSpread } from "./mean-interval.js";

const RESAMPLES = 2000;
/** Number of tasks above which the means are as good as normally distributed, and resampling would take seconds. */
const MOST_RESAMPLED = 1000;
const SEED = 20_260_101;

/**
 * Mean of a number for each task, with a percentile interval over resampled tasks; null without tasks. If all tasks
 * have the same number, resampling finds no spread, and the interval is that of Wilson; for very many tasks it is that
 * of Student.
 */
export function bootstrapMean(numbers: readonly number[]): Estimate | null {
  if (numbers.length === 0) return null;
  const value = mean(numbers);
  if (numbers.length === 1) return { value, low: null, high: null };
  if (numbers.every((number) => number === value)) return { value, ...withoutSpread(value, numbers.length) };
  if (numbers.length > MOST_RESAMPLED) return meanReward(numbers.map((number) => [number]));
  const random = randomNumbers(SEED);
  // The same seed draws the same tasks, in whatever order they come.
  const sorted = numbers.toSorted((a, b) => a - b);
  const means = Array.from({ length: RESAMPLES }, () => resampledMean(sorted, random)).toSorted(
    (a, b) => a - b,
  );
  const at = (share: number) => means[Math.min(RESAMPLES - 1, Math.floor(share * RESAMPLES))] ?? value;
  return { value, low: at(0.025), high: at(0.975) };
}

function resampledMean(numbers: readonly number[], random: () => number): number {
  let sum = 0;
  for (let drawn = 0; drawn < numbers.length; drawn++)
    sum += numbers[Math.floor(random() * numbers.length)] ?? 0;
  return sum / numbers.length;
}
