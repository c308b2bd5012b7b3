import { bootstrapMean } from "./bootstrap.js";
import type { Estimate } from "./mean-interval.js";

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
