import { createHash } from "node:crypto";
import { BrigError } from "../../../errors.js";
import { matchesWildcards } from "../../../lib/wildcards.js";
import type { Task } from "../../tasks/task.js";

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
export function tagsOf({ metadata: { tags } }: Pick<Task, "metadata">): string[] {
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
}

/**
 * Whether a task of this name may be among those that are chosen. One whose name is not known is only left out where names are
 * asked for.
 */
export function isChosen(name: string | undefined, { include, exclude = [] }: TaskSelection): boolean {
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
