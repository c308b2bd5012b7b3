import { createHash } from "node:crypto";
import { BrigError, isBrigError } from "../../../errors.js";
import { matchesWildcards } from "../../../lib/wildcards.js";
import { taskFindings } from "../../tasks/lint/lint-tasks.js";
import { faultsError, faultText } from "../../tasks/notes.js";
import { type FoundTasks, type ReadTasksOptions, readAll, sameNames } from "../../tasks/read-tasks.js";
import type { Task } from "../../tasks/task.js";
import { refuseUnsupported } from "../attempt/unsupported.js";
import type { BatchFile } from "./batch-settings.js";

export interface ReadSelectedOptions extends ReadTasksOptions {
  selection: TaskSelection;
  /** Leaves out what cannot be used, instead of refusing all. Default: false. */
  skipsUnusable?: boolean | undefined;
}

export interface SelectedTasks extends Pick<FoundTasks, "tasks" | "origins" | "warnings"> {
  /** Why tasks were left out that were chosen, one sentence each, with the task. */
  skipped: string[];
}

/**
 * Reads the tasks at these paths that are chosen by name; what is wrong with the others is of no matter. Errors: `task.invalid`,
 * `usage.invalid`.
 */
export async function readSelected(
  paths: readonly string[],
  { selection, skipsUnusable = false, ...options }: ReadSelectedOptions,
): Promise<SelectedTasks> {
  const { tasks, unusable, faults, origins, warnings } = await readAll(paths, options);
  const faulty = unusable.filter(({ name }) => isChosen(name, selection)).flatMap((one) => one.faults);
  if (faults.length > 0 || (!skipsUnusable && faulty.length > 0)) throw faultsError([...faults, ...faulty]);
  const { usable, reasons } = skipsUnusable
    ? await partition(tasks.filter(({ name }) => isChosen(name, selection)))
    : { usable: tasks, reasons: [] };
  const known = [...tasks, ...unusable].flatMap(({ name }) => name ?? []);
  const selected = selectTasks(usable, selection, known);
  const twice = sameNames(selected);
  if (twice.length > 0) throw faultsError(twice);
  return { tasks: selected, origins, warnings, skipped: [...faulty.map(faultText), ...reasons] };
}

async function partition(tasks: readonly Task[]): Promise<{ usable: Task[]; reasons: string[] }> {
  const usable: Task[] = [];
  const reasons: string[] = [];
  for (const task of tasks) {
    const reason = await whyUnusable(task);
    if (reason === null) usable.push(task);
    else reasons.push(reason);
  }
  return { usable, reasons };
}

/** Reason for which an attempt at a readable task would be refused; null for none. */
async function whyUnusable(task: Task): Promise<string | null> {
  try {
    refuseUnsupported(task);
  } catch (error) {
    if (isBrigError(error, "usage.invalid")) return error.message;
    throw error;
  }
  const [finding] = await taskFindings(task);
  return finding === undefined ? null : `${task.source}/${finding.file}: ${finding.message}`;
}

/** Selects tasks from those that were found. Undefined for all. */
export interface TaskSelection {
  /** Patterns of names, with `*` and `?`. A task of any of them is taken. */
  include?: readonly string[] | undefined;
  exclude?: readonly string[] | undefined;
  /** A task with any of these tags is taken. */
  tags?: readonly string[] | undefined;
  /** Size of a sample of the tasks that are left. The same seed takes the same ones, in whatever order they were found. */
  sample?: number | undefined;
  /** Default: 0. */
  seed?: number | undefined;
}

/** The tags that a task gives itself. */
function tagsOf({ metadata: { tags } }: Pick<Task, "metadata">): string[] {
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
}

/** What `batch.json` says of a task. */
export function taskInFile(task: Task): BatchFile["tasks"][number] {
  const { name, checksum, parts, format } = task;
  return { name, checksum, parts: { ...parts }, format, tags: tagsOf(task) };
}

/**
 * Whether a task of this name may be among those that are chosen. One whose name is not known is only left out where names are
 * asked for.
 */
function isChosen(name: string | undefined, { include, exclude = [] }: TaskSelection): boolean {
  if (name === undefined) return include === undefined;
  const matches = (pattern: string) => matchesWildcards(name, pattern);
  return (include ?? ["*"]).some(matches) && !exclude.some(matches);
}

/**
 * Keeps the order. `known` are the names that patterns may have. Error: `usage.invalid` if a pattern or a tag is that of no task, or
 * nothing is left.
 */
export function selectTasks(
  tasks: readonly Task[],
  selection: TaskSelection,
  known: readonly string[] = tasks.map(({ name }) => name),
): Task[] {
  const { include = [], exclude = [], tags } = selection;
  for (const pattern of [...include, ...exclude])
    if (!known.some((name) => matchesWildcards(name, pattern)))
      throw nothing(`no task is named "${pattern}"`);
  for (const tag of tags ?? [])
    if (!tasks.some((task) => tagsOf(task).includes(tag))) throw nothing(`no task has the tag "${tag}"`);
  const matching = tasks.filter(
    (task) =>
      isChosen(task.name, selection) &&
      (tags === undefined || tagsOf(task).some((tag) => tags.includes(tag))),
  );
  if (matching.length === 0) throw nothing("no task is left");
  return sampleOf(matching, selection);
}

function sampleOf(tasks: readonly Task[], { sample, seed = 0 }: TaskSelection): Task[] {
  if (sample === undefined || sample >= tasks.length) return [...tasks];
  const rank = ({ name }: Task) => createHash("sha256").update(`${seed}\n${name}`).digest("hex");
  const ranks = new Map(tasks.map((task) => [task, rank(task)]));
  const byRank = tasks.toSorted((a, b) => ((ranks.get(a) ?? "") < (ranks.get(b) ?? "") ? -1 : 1));
  const taken = new Set(byRank.slice(0, sample));
  return tasks.filter((task) => taken.has(task));
}

function nothing(message: string): BrigError {
  return new BrigError(message, { code: "usage.invalid", hint: "see their names with --dry-run" });
}
