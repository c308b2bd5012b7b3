import type { Task } from "../../tasks/task.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { mainReward } from "./parse-rewards.js";

/** Steps that were not reached, and those without a valid reward, count as 0. */
export function gradeOf(
  task: Pick<Task, "steps" | "rewardStrategy">,
  steps: AttemptResult["steps"],
): Pick<AttemptResult, "reward" | "rewards"> {
  const perStep = task.steps.map((_, index) => steps[index]?.rewards ?? {});
  const main = perStep.map((rewards) => mainReward(rewards) ?? 0);
  if (task.rewardStrategy === "final" || task.steps.length === 1)
    return { reward: main.at(-1) ?? 0, rewards: perStep.at(-1) ?? {} };
  const keys = [...new Set(perStep.flatMap((rewards) => Object.keys(rewards)))];
  const rewards = Object.fromEntries(keys.map((key) => [key, mean(perStep.map((one) => one[key] ?? 0))]));
  return { reward: mean(main), rewards };
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length);
}
