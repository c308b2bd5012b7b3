import { studentQuantile } from "./student-quantile.js";

/** A number and its 95 % interval; null where there are too few tasks for one. */
export interface Estimate {
  value: number;
  low: number | null;
  high: number | null;
}

const NORMAL_QUANTILE = 1.959964;

/**
 * The mean over tasks of their mean rewards, so that each task counts the same. Attempts at one task resemble
 * each other, so the interval treats tasks, not attempts, as independent: Student's t over their means. Where
 * all tasks have the mean 0 or all have 1, it is Wilson's interval, since that of t would have no width. It does
 * not go beyond 0 and 1 if no mean does. Null without rewards.
 */
export function meanReward(rewardsByTask: Iterable<readonly number[]>): Estimate | null {
  const means = [...rewardsByTask].filter(({ length }) => length > 0).map(mean);
  if (means.length === 0) return null;
  const value = mean(means);
  const spread = standardError(means);
  if (spread === null) return { value, low: null, high: null };
  if (spread === 0) return { value, ...withoutSpread(value, means.length) };
  const half = studentQuantile(means.length - 1) * spread;
  const isShare = means.every((one) => one >= 0 && one <= 1);
  const [least, most] = isShare ? [0, 1] : [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  return { value, low: Math.max(least, value - half), high: Math.min(most, value + half) };
}

/**
 * The mean over tasks of how much their rewards differ between two runs, with Student's interval. Tasks are compared
 * with themselves, so how hard they are does not widen it. It has no interval where all differ by the same.
 */
export function meanDifference(differences: readonly number[]): Estimate | null {
  if (differences.length === 0) return null;
  const value = mean(differences);
  const spread = standardError(differences);
  if (spread === null || spread === 0) return { value, low: null, high: null };
  const half = studentQuantile(differences.length - 1) * spread;
  return { value, low: value - half, high: value + half };
}

export function mean(numbers: readonly number[]): number {
  return sumOf(numbers) / numbers.length;
}

/** Adds in the order of size, so that rounding gives the same sum in whatever order the numbers come. */
function sumOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b).reduce((sum, number) => sum + number, 0);
}

/** Standard error of the mean; null for fewer than two numbers. */
function standardError(numbers: readonly number[]): number | null {
  if (numbers.length < 2) return null;
  const middle = mean(numbers);
  const squares = sumOf(numbers.map((number) => (number - middle) ** 2));
  return Math.sqrt(squares / (numbers.length - 1) / numbers.length);
}

/** Wilson's interval for a share of 0 or of 1; none for another number that all tasks have. */
export function withoutSpread(value: number, count: number): { low: number | null; high: number | null } {
  const share = count / (count + NORMAL_QUANTILE ** 2);
  if (value === 0) return { low: 0, high: 1 - share };
  return value === 1 ? { low: share, high: 1 } : { low: null, high: null };
}
