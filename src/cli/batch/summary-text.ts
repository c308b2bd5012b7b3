import type { BatchOutcome, Summary } from "../../batch/index.js";
import { estimateText, passKindsText } from "../../batch/index.js";

/** One row for each task. */
export function taskRows({ perTask }: Summary): string[][] {
  return [
    ["TASK", "REWARD", "PASSED", "HOW", "NO SCORE"],
    ...perTask.map(({ task, reward, scored, passed, passKinds, unscored, infrastructure, missing }) => [
      task,
      reward === null ? "-" : reward.toFixed(3),
      `${passed}/${scored}`,
      passKindsText(passKinds, { isShort: true }) || "-",
      String(unscored + infrastructure + missing),
    ]),
  ];
}

/** The sentences below the table. */
export function finalText(summary: Summary, { stop }: Pick<BatchOutcome, "stop">): string {
  const { attempts, reward, passes, failures, usage } = summary;
  const lines = [
    `${attempts.scored} of ${attempts.planned} attempts have a score`,
    ...(attempts.passed === 0 ? noneLines(attempts) : [`passed: ${passKindsText(summary.passKinds)}`]),
    ...(reward === null ? [] : [`reward ${estimateText(reward, scoredTasks(summary))}`]),
    ...passes.flatMap(passLines),
    ...Object.entries(failures).map(([name, count]) => `${count} without a score: ${name}`),
    ...(attempts.missing === 0 ? [] : [`${attempts.missing} not run to their end${whyText(stop)}`]),
    ...(usage.inputTokens === 0 ? [] : [usageText(usage)]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** A run without a pass is a result like any other, which a script may not expect. */
function noneLines({ scored }: Summary["attempts"]): string[] {
  return scored === 0 ? [] : ["no attempt passed; the exit status tells that only with --min-reward"];
}

function scoredTasks({ perTask }: Summary): number {
  return perTask.filter(({ scored }) => scored > 0).length;
}

function passLines({ k, passAt, passAll, tasks }: Summary["passes"][number]): string[] {
  if (k === 1) return [`pass@1 ${estimateText(passAt, tasks)}`];
  return [`pass@${k} ${estimateText(passAt, tasks)}`, `pass^${k} ${estimateText(passAll, tasks)}`];
}

function whyText(stop: BatchOutcome["stop"]): string {
  if (stop === null) return "";
  if (stop.kind === "limit") return `: the limit of the run's ${stop.limit} was reached`;
  return stop.kind === "failed"
    ? `: ${stop.task} #${stop.attempt} did not pass`
    : ": the run was interrupted";
}

function usageText({ inputTokens, outputTokens, costUsd }: Summary["usage"]): string {
  const cost = costUsd === null ? "at an unknown cost" : `for $${costUsd.toFixed(2)}`;
  return `${inputTokens} tokens in, ${outputTokens} out, ${cost}`;
}
