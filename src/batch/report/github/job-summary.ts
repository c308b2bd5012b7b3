import { estimateText } from "../statistics/estimate-text.js";
import { passKindsText } from "../summary/pass-text.js";
import type { Summary } from "../summary/summary.js";

/** GitHub takes 1 MiB of all steps together. */
const MAX_TASKS = 1000;
const MAX_NAME_LENGTH = 200;

/** Markdown for the page of the job: the numbers of the run, and a row for each task, those that did not pass first. */
export function jobSummary(summary: Summary): string {
  const { agent, attempts, passKinds, reward, passes, failures, perTask } = summary;
  const name = [agent.name, agent.model].filter((part) => part !== null).join(" ");
  const passed = passKindsText(passKinds);
  const numbers = [
    ["Attempts with a score", `${attempts.scored} of ${attempts.planned}`],
    ...(passed === "" ? [] : [["Passed", passed]]),
    ...(reward === null
      ? []
      : [["Reward", estimateText(reward, perTask.filter(({ scored }) => scored > 0).length)]]),
    ...passes.map(({ k, passAt, tasks }) => [`pass@${k}`, estimateText(passAt, tasks)]),
    ...Object.entries(failures).map(([kind, count]) => [`No score: ${kind}`, String(count)]),
  ];
  const rank = ({ passed, scored }: Summary["perTask"][number]) => (scored === 0 ? 1 : passed / scored);
  const tasks = perTask.toSorted((a, b) => rank(a) - rank(b));
  const rows = tasks.slice(0, MAX_TASKS).map((task) => {
    const { scored, passed, unscored, infrastructure, missing } = task;
    const mark = scored > 0 && passed === scored ? "✅" : passed === 0 ? "❌" : "◐";
    const mean = task.reward === null ? "–" : task.reward.toFixed(3);
    return [mark, task.task, mean, `${passed}/${scored}`, String(unscored + infrastructure + missing)];
  });
  const left = tasks.length - rows.length;
  return [
    `## brig batch: ${markdown(name)}`,
    "",
    ...table(["", ""], numbers),
    "",
    ...table(["", "Task", "Reward", "Passed", "No score"], rows),
    ...(left > 0 ? ["", `And ${left} more tasks.`] : []),
    "",
    "",
  ].join("\n");
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map(markdown).join(" | ")} |`;
  return [line(heads), `|${heads.map(() => " --- |").join("")}`, ...rows.map(line)];
}

/** Escapes text: Markdown and HTML see no punctuation that means something to them, and a cell stays one. */
function markdown(text: string): string {
  return text
    .slice(0, MAX_NAME_LENGTH)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/[!-,.:-@[-`{-~]/g, (character) => `&#${character.charCodeAt(0)};`);
}
