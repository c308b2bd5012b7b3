/** The compared part of an attempt. The reward is null for one without a score. */
export interface ComparedAttempt {
  task: string;
  reward: number | null;
}

/** Result of a run for a task. Only attempts with a reward count. */
export interface TaskScore {
  attempts: number;
  scored: number;
  /** Attempts with the full reward. */
  full: number;
  /** Mean; null if no attempt has a reward. */
  reward: number | null;
}

export type Change =
  /** Every scored attempt of B has the full reward, and not every one of A. */
  | "gained"
  | "lost"
  /** The same is solved or unsolved, with another reward. */
  | "better"
  | "worse"
  | "same"
  /** One of the runs has no score of it. */
  | "incomparable";

export interface TaskComparison {
  task: string;
  a: TaskScore;
  b: TaskScore;
  change: Change;
  /** B less A. */
  difference: number | null;
}

const order: readonly Change[] = ["lost", "gained", "worse", "better", "same", "incomparable"];

/** Flipped tasks first, then by how much the reward differs. */
export function compareTasks(a: readonly ComparedAttempt[], b: readonly ComparedAttempt[]): TaskComparison[] {
  const [scoresA, scoresB] = [scoresOf(a), scoresOf(b)];
  const tasks = [...new Set([...scoresA.keys(), ...scoresB.keys()])];
  return tasks
    .map((task) => comparisonOf(task, scoresA.get(task) ?? noScore, scoresB.get(task) ?? noScore))
    .toSorted(
      (x, y) =>
        order.indexOf(x.change) - order.indexOf(y.change) ||
        Math.abs(y.difference ?? 0) - Math.abs(x.difference ?? 0) ||
        (x.task < y.task ? -1 : 1),
    );
}

const noScore: TaskScore = { attempts: 0, scored: 0, full: 0, reward: null };

function comparisonOf(task: string, a: TaskScore, b: TaskScore): TaskComparison {
  if (a.reward === null || b.reward === null) return { task, a, b, change: "incomparable", difference: null };
  const difference = b.reward - a.reward;
  return { task, a, b, change: changeOf(a, b, difference), difference };
}

function changeOf(a: TaskScore, b: TaskScore, difference: number): Change {
  const [isSolvedByA, isSolvedByB] = [a.full === a.scored, b.full === b.scored];
  if (isSolvedByA !== isSolvedByB) return isSolvedByB ? "gained" : "lost";
  if (difference === 0) return "same";
  return difference > 0 ? "better" : "worse";
}

function scoresOf(rows: readonly ComparedAttempt[]): Map<string, TaskScore> {
  const rewards = new Map<string, (number | null)[]>();
  for (const { task, reward } of rows) {
    const known = rewards.get(task);
    if (known === undefined) rewards.set(task, [reward]);
    else known.push(reward);
  }
  return new Map([...rewards].map(([task, all]) => [task, scoreOf(all)]));
}

function scoreOf(all: readonly (number | null)[]): TaskScore {
  const scored = all.filter((reward) => reward !== null);
  return {
    attempts: all.length,
    scored: scored.length,
    full: scored.filter((reward) => reward >= 1).length,
    reward: scored.length === 0 ? null : scored.reduce((sum, reward) => sum + reward, 0) / scored.length,
  };
}
