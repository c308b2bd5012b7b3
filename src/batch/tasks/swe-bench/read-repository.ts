import { type Dirent, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { systemReason } from "../../../lib/errno.js";
import { listTaskFiles } from "../files/list-files.js";
import type { TaskTree } from "../files/task-tree.js";
import { TaskNotes } from "../notes/task-notes.js";
import type { ReadOptions, ReadTask } from "../read-task.js";
import { checkedTable, isTable, type Table } from "../values/checked-table.js";
import { parseYaml } from "../values/parse-text.js";
import { readInstance } from "./read-instance.js";
import { repositorySchema } from "./schema.js";

const REPOSITORY_FILE = "sweb.yaml";
const TASK_FILE = "task.yaml";
const TESTS_FILE = "tests.json";
const ASSETS = "test_assets";

/** Files of a task that stand for columns of a data set. Line ends are kept, since patches depend on them. */
const columns = {
  patch: "gold.patch",
  eval_script: "eval.sh",
  problem_statement: "problem_statement.md",
} as const;

const taskNames = [TASK_FILE, TESTS_FILE, ASSETS, ...Object.values(columns)];

/** Reads a task repository: each directory in `tasks/`, but for those of splits that it does not publish. */
export async function readTaskRepository(
  directory: string,
  options: ReadOptions,
): Promise<readonly ReadTask[]> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, names: [REPOSITORY_FILE], signal: options.signal });
  const value = yamlOf(REPOSITORY_FILE, tree, notes);
  const repository =
    value === undefined
      ? null
      : checkedTable(repositorySchema, value, { notes, place: { file: REPOSITORY_FILE } });
  if (repository === null) return [{ kind: "faulty", faults: notes.faults }];
  const tasks: ReadTask[] = [];
  for (const name of taskDirectories(directory, notes)) {
    options.signal?.throwIfAborted();
    const read = await readSweBenchTask(join(directory, "tasks", name), options);
    const split = read.kind === "task" ? read.task.metadata.split : undefined;
    if (typeof split !== "string" || repository.splits.includes(split)) tasks.push(read);
  }
  return notes.faults.length === 0 ? tasks : [...tasks, { kind: "faulty", faults: notes.faults }];
}

function taskDirectories(directory: string, notes: TaskNotes): string[] {
  try {
    const entries: Dirent[] = readdirSync(join(directory, "tasks"), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    if (names.length === 0) notes.refuse("has no tasks", { file: "tasks" });
    return names.toSorted();
  } catch (error) {
    notes.refuse(`cannot be read: ${systemReason(error)}`, { file: "tasks" });
    return [];
  }
}

/** Reads one directory of a task repository. */
export async function readSweBenchTask(directory: string, { signal }: ReadOptions): Promise<ReadTask> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, names: taskNames, signal });
  const row = rowOf(tree, notes);
  if (row !== null && row.instance_id !== basename(directory))
    notes.refuse("differs from the name of the directory", { file: TASK_FILE, field: "instance_id" });
  if (tree.below(ASSETS).length > 0)
    notes.refuse("is not supported: the tests would lack these files", { file: ASSETS });
  if (row === null || notes.faults.length > 0)
    return { kind: "faulty", faults: notes.faults, name: basename(directory) };
  return readInstance(row, notes, { file: TASK_FILE });
}

function rowOf(tree: TaskTree, notes: TaskNotes): Table | null {
  const settings = yamlOf(TASK_FILE, tree, notes);
  const tests = testsOf(tree, notes);
  const texts = Object.entries(columns).map(([column, file]) => [column, tree.text(file, notes)] as const);
  if (!isTable(settings) || tests === null || texts.some(([, text]) => text === null)) {
    if (settings !== undefined && !isTable(settings)) notes.refuse("must be a table", { file: TASK_FILE });
    return null;
  }
  return { ...settings, ...tests, ...Object.fromEntries(texts) };
}

function testsOf(tree: TaskTree, notes: TaskNotes): Table | null {
  const text = tree.text(TESTS_FILE, notes);
  if (text === null) return null;
  try {
    const tests: unknown = JSON.parse(text);
    if (isTable(tests)) return { FAIL_TO_PASS: tests.FAIL_TO_PASS, PASS_TO_PASS: tests.PASS_TO_PASS };
    notes.refuse("must be a table", { file: TESTS_FILE });
  } catch {
    notes.refuse("is not JSON", { file: TESTS_FILE });
  }
  return null;
}

function yamlOf(file: string, tree: TaskTree, notes: TaskNotes): unknown {
  const text = tree.text(file, notes);
  return text === null ? undefined : parseYaml(text, { notes, file });
}
