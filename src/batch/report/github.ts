import { isAbsolute, relative } from "node:path";
import { MOST_ANNOTATIONS, workflowCommand } from "../../lib/workflow-command.js";
import { passes } from "../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../runs/results/attempt-result.js";
import type { Task } from "../tasks/task.js";
import { passKindsText } from "./pass-text.js";
import { estimateText } from "./statistics.js";
import type { Summary } from "./summary.js";
import { problemOf } from "./write-reports.js";

const MAX_MESSAGE_LENGTH = 2000;

export interface AnnotationOptions {
  tasks: readonly Pick<Task, "name" | "source">[];
  /** The root of the repository; files elsewhere are not named. */
  workspace: string;
}

/**
 * One workflow command for each task of which an attempt did not pass: an error for a lower reward, a warning if there
 * is no score. Each is one line, whatever the texts contain that came out of containers.
 */
export async function annotations(
  results: AsyncIterable<AttemptResult>,
  { tasks, workspace }: AnnotationOptions,
): Promise<string[]> {
  const sources = new Map(tasks.map(({ name, source }) => [name, source]));
  const [errors, warnings] = [new Map<string, string>(), new Map<string, string>()];
  for await (const result of results) {
    if (passes(result)) continue;
    const found = result.status === "scored" ? errors : warnings;
    if (found.size === MOST_ANNOTATIONS || found.has(result.task)) continue;
    const level = result.status === "scored" ? "error" : "warning";
    const place = placeOf(sources.get(result.task), workspace);
    found.set(result.task, command(level, { result, place }));
  }
  return [...errors.values(), ...warnings.values()];
}

function command(
  level: "error" | "warning",
  { result, place }: { result: AttemptResult; place: Place | null },
): string {
  const { task, attempt } = result;
  const properties = { ...place, title: `${task} #${attempt}` };
  const text = (problemOf(result)?.lines ?? []).join("\n").slice(0, MAX_MESSAGE_LENGTH);
  return workflowCommand(level, properties, text);
}

interface Place {
  file: string;
  line?: number;
}

/** A task is a directory, or `FILE:LINE`. */
function placeOf(source: string | undefined, workspace: string): Place | null {
  const [, path, line] = /^(.*?)(?::([0-9]+))?$/s.exec(source ?? "") ?? [];
  if (path === undefined || path === "") return null;
  const file = relative(workspace, path);
  if (file === "" || file.startsWith("..") || isAbsolute(file)) return null;
  return line === undefined ? { file } : { file, line: Number(line) };
}

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
