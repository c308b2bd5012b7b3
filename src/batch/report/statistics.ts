import { randomNumbers } from "../../lib/random-numbers.js";

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
function withoutSpread(value: number, count: number): { low: number | null; high: number | null } {
  const share = count / (count + NORMAL_QUANTILE ** 2);
  if (value === 0) return { low: 0, high: 1 - share };
  return value === 1 ? { low: share, high: 1 } : { low: null, high: null };
}

/** Two-sided 95 %: G. W. Hill, Algorithm 396, "Student's t-quantiles" (CACM 1970), with p = 0.05. */
export function studentQuantile(degreesOfFreedom: number): number {
  const n = degreesOfFreedom;
  const p = 0.05;
  if (n === 1) return 1 / Math.tan((p * Math.PI) / 2);
  if (n === 2) return Math.sqrt(2 / (p * (2 - p)) - 2);
  const a = 1 / (n - 0.5);
  const b = (48 / a) * (1 / a);
  let c = ((20700 * a) / b - 98) * a * a - 16 * a + 96.36;
  const d = ((94.5 / (b + c) - 3) / b + 1) * Math.sqrt((a * Math.PI) / 2) * n;
  let y = (d * p) ** (2 / n);
  if (y > 0.05 + a) {
    const x = -1.959963984540054;
    const x2 = x * x;
    if (n < 5) c += 0.3 * (n - 4.5) * (x + 0.6);
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b;
    const corrected = (((((0.4 * x2 + 6.3) * x2 + 36) * x2 + 94.5) / c - x2 - 3) / b + 1) * x;
    y = Math.expm1(a * corrected * corrected);
  } else {
    y =
      ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) *
        ((n + 1) / (n + 2)) +
      1 / y;
  }
  return Math.sqrt(n * y);
}

/** Number of attempts at a task with a score, and number of those that passed. */
export interface TaskPasses {
  scored: number;
  passed: number;
}

export interface PassEstimates {
  k: number;
  /** The chance that at least one of k attempts at a task passes. */
  passAt: Estimate;
  /** The chance that all k attempts at a task pass. */
  passAll: Estimate;
  /** Number of tasks with at least k scored attempts, over which the chances are taken. */
  tasks: number;
}

const usualNumbers = [1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 100];

/** Estimates for numbers k. Default: the usual ones up to the most attempts that a task has, and that one. */
export function passEstimates(
  tasks: readonly TaskPasses[],
  wanted: readonly number[] = numbersUpTo(tasks),
): PassEstimates[] {
  const numbers = [...new Set(wanted)].filter((k) => k > 0);
  return numbers.flatMap((k) => {
    const enough = tasks.filter(({ scored }) => scored >= k);
    const passAt = bootstrapMean(enough.map((task) => passAtK(task, k)));
    const passAll = bootstrapMean(enough.map((task) => passAllK(task, k)));
    return passAt && passAll ? [{ k, passAt, passAll, tasks: enough.length }] : [];
  });
}

function numbersUpTo(tasks: readonly TaskPasses[]): number[] {
  const most = tasks.reduce((so, { scored }) => Math.max(so, scored), 0);
  return [...usualNumbers.filter((k) => k < most), most];
}

/** Unbiased: 1 − C(n−c, k) / C(n, k). */
function passAtK({ scored, passed }: TaskPasses, k: number): number {
  return 1 - shareOfDraws(scored - passed, scored, k);
}

/** Unbiased: C(c, k) / C(n, k). */
function passAllK({ scored, passed }: TaskPasses, k: number): number {
  return shareOfDraws(passed, scored, k);
}

/** C(some, k) / C(all, k), as a product, whose factors never overflow. */
function shareOfDraws(some: number, all: number, k: number): number {
  let share = 1;
  for (let drawn = 0; drawn < k; drawn++) share *= Math.max(0, some - drawn) / (all - drawn);
  return share;
}

const RESAMPLES = 2000;
/** Number of tasks above which the means are as good as normally distributed, and resampling would take seconds. */
const MOST_RESAMPLED = 1000;
const SEED = 20_260_101;

/**
 * Mean of a number for each task, with a percentile interval over resampled tasks; null without tasks. If all tasks
 * have the same number, resampling finds no spread, and the interval is that of Wilson; for very many tasks it is that
 * of Student.
 */
function bootstrapMean(numbers: readonly number[]): Estimate | null {
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

/**
 * McNemar's exact test: how likely a split at least as uneven is if a task is as likely to flip one way as the
 * other. 1 if none has flipped.
 */
export function mcnemar({ gained, lost }: { gained: number; lost: number }): number {
  const flipped = gained + lost;
  let probability = 0.5 ** Math.min(flipped, 1000);
  if (flipped > 1000) return normalApproximation(gained, lost);
  let tail = 0;
  for (let count = 0; count <= Math.min(gained, lost); count++) {
    tail += probability;
    probability *= (flipped - count) / (count + 1);
  }
  return Math.min(1, 2 * tail);
}

/** Approximates the probability, with continuity correction, for numbers whose exact probabilities would underflow. */
function normalApproximation(gained: number, lost: number): number {
  const z = Math.max(0, Math.abs(gained - lost) - 1) / Math.sqrt(gained + lost);
  return Math.min(1, 2 * upperTail(z));
}

/** Upper tail of the normal distribution: Abramowitz and Stegun 7.1.26, to seven digits. */
function upperTail(z: number): number {
  const x = z / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return (series * Math.exp(-x * x)) / 2;
}

/** With fewer tasks, an interval says more about their number than about the agent. */
const FEW_TASKS = 10;

/** "0.583 (95 % interval 0.410–0.750)", and that the tasks are few if they are. Without an interval, the number alone. */
export function estimateText({ value, low, high }: Estimate, tasks: number): string {
  if (low === null || high === null) return value.toFixed(3);
  const few = tasks < FEW_TASKS ? `; ${tasks} tasks are few` : "";
  return `${value.toFixed(3)} (95 % interval ${low.toFixed(3)}–${high.toFixed(3)}${few})`;
}
