import { type Dirent, readdirSync, statSync } from "node:fs";
import { extname, join, relative, resolve } from "node:path";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { readHarborTask } from "./harbor/read-task.js";
import { faultsError, shown, type TaskFault, TaskNotes } from "./notes.js";
import { readPlainFile } from "./plain.js";
import type { ReadOptions, ReadTask, UnusableTask } from "./read-task.js";
import { hasInstances, readSweBenchFile, readSweBenchTask, readTaskRepository } from "./swe-bench.js";
import type { Task } from "./task.js";
import { readTerminalBenchTask } from "./terminal-bench.js";

export interface ReadTasksOptions extends ReadOptions {
  /** Relative paths begin here. */
  cwd: string;
}

/**
 * Reads all tasks at these paths: directories of tasks, at most three levels above them, or files. Error:
 * `task.invalid`, which names every fault of every task.
 */
export async function readTasks(paths: readonly string[], options: ReadTasksOptions): Promise<Task[]> {
  const { tasks, faults } = await examineTasks(paths, options);
  if (faults.length > 0) throw faultsError(faults);
  return tasks;
}

interface ExaminedTasks extends Pick<FoundTasks, "tasks" | "warnings"> {
  /** Faults of the paths, and of all tasks. */
  faults: TaskFault[];
}

/** The same, with the faults beside the tasks that can be used. */
export async function examineTasks(
  paths: readonly string[],
  options: ReadTasksOptions,
): Promise<ExaminedTasks> {
  const { tasks, unusable, faults, warnings } = await readAll(paths, options);
  const all = [...faults, ...unusable.flatMap((task) => task.faults), ...sameNames(tasks)];
  return { tasks, faults: all, warnings };
}

export interface FoundTasks {
  tasks: Task[];
  unusable: UnusableTask[];
  /** Faults of the paths. */
  faults: TaskFault[];
  /** Absolute paths by the names of tasks. */
  origins: ReadonlyMap<string, string>;
  /** Warnings about the paths, one sentence each. */
  warnings: string[];
}

/** Reads all that is at these paths, for somebody who then chooses among it. Names may be there twice. */
export async function readAll(
  paths: readonly string[],
  { cwd, ...options }: ReadTasksOptions,
): Promise<FoundTasks> {
  const { found, faults, warnings } = locate(paths.map((path) => resolve(cwd, path)));
  const read: ReadTask[] = [];
  const origins = new Map<string, string>();
  for (const { path, read: reader } of found) {
    options.signal?.throwIfAborted();
    const there = await reader(path, options);
    for (const one of there) if (one.kind === "task") origins.set(one.task.name, path);
    read.push(...there);
  }
  const tasks = read.flatMap((one) => (one.kind === "task" ? [one.task] : []));
  const unusable = read.flatMap((one) => (one.kind === "faulty" && one.faults.length > 0 ? [one] : []));
  return { tasks, unusable, faults, origins, warnings };
}

/** Finds each task once, also if the paths overlap. */
function locate(paths: readonly string[]): { found: FoundTask[]; faults: TaskFault[]; warnings: string[] } {
  const faults: TaskFault[] = [];
  const warnings: string[] = [];
  const found = new Map<string, FoundTask>();
  for (const path of new Set(paths)) {
    const notes = new TaskNotes(path);
    for (const task of findTasks(path, notes)) found.set(task.path, task);
    faults.push(...notes.faults);
    warnings.push(...notes.warnings);
  }
  return { found: [...found.values()], faults, warnings };
}

/** Results lie in folders by the task's name, in which a slash is written as two underscores. */
export function sameNames(tasks: readonly Task[]): TaskFault[] {
  const byFolder = new Map<string, Task>();
  const faults: TaskFault[] = [];
  for (const task of tasks) {
    const folder = task.name.replaceAll("/", "__");
    const other = byFolder.get(folder);
    if (other === undefined) byFolder.set(folder, task);
    else {
      const notes = new TaskNotes(task.source);
      notes.refuse(`has the name ${shown(task.name)}, which ${shown(other.source)} has too`, {
        hint: "rename one of the tasks, or run them in batches of their own",
      });
      faults.push(...notes.faults);
    }
  }
  return faults;
}

/** Reads what is at a path: one task, or several. */
type Reader = (path: string, options: ReadOptions) => Promise<readonly ReadTask[]>;

interface FoundTask {
  path: string;
  read: Reader;
}

/** Deepest level, below a given directory, at which its tasks may be. */
const MAX_DEPTH = 3;
/** Deepest level, and most directories, searched for tasks that are too deep to be read. */
const MAX_LOOKED_DEPTH = 8;
const MAX_LOOKED = 10_000;
const SHOWN_DEEPER = 5;

const one =
  (read: (path: string, options: ReadOptions) => Promise<ReadTask>): Reader =>
  async (path, options) => [await read(path, options)];

/** The first whose files are all there reads a directory. */
const directoryReaders: readonly { files: readonly string[]; read: Reader }[] = [
  { files: ["task.toml"], read: one(readHarborTask) },
  { files: ["sweb.yaml", "tasks"], read: readTaskRepository },
  { files: ["task.yaml", "tests.json", "eval.sh"], read: one(readSweBenchTask) },
  { files: ["task.yaml"], read: one(readTerminalBenchTask) },
];

/** Rows of JSON are instances of SWE-bench if they look like them. */
const readInstances: Reader = async (path) => {
  if (await hasInstances(path)) return await readSweBenchFile(path);
  const notes = new TaskNotes(path);
  notes.refuse("has no instances of SWE-bench", { hint: "give rows of your own as JSONL, YAML or CSV" });
  return [{ kind: "faulty", faults: notes.faults }];
};

const readRows: Reader = async (path, options) =>
  (await hasInstances(path)) ? await readSweBenchFile(path) : await readPlainFile(path, options);

/** Readers by the ending of the file's name. */
const fileReaders: Readonly<Record<string, Reader>> = {
  ".json": readInstances,
  ".jsonl": readRows,
  ".yaml": readPlainFile,
  ".yml": readPlainFile,
  ".csv": readPlainFile,
};

/** The tasks at an absolute path, in the order of their names. A path without any is a fault; those that lie too deep are named. */
function findTasks(path: string, notes: TaskNotes): FoundTask[] {
  try {
    // A link that is named by the user is followed; those below a directory are not.
    if (!statSync(path).isDirectory()) return fileTasks(path, notes);
    const deeper = new DeeperTasks(path);
    const found = directoryTasks(path, { depth: 0, notes, deeper });
    const tooDeep = deeper.text();
    if (found.length > 0 && tooDeep !== null) notes.warn(`${shown(path)}: ${tooDeep}`);
    if (found.length === 0 && notes.faults.length === 0)
      notes.refuse(tooDeep === null ? "has no tasks" : `has no tasks: ${tooDeep}`, {
        hint:
          tooDeep === null
            ? `a task has one of the files ${knownFiles()}`
            : "name a directory nearer to them",
      });
    return found;
  } catch (error) {
    notes.refuse(errnoOf(error) === "ENOENT" ? "does not exist" : `cannot be read: ${systemReason(error)}`);
    return [];
  }
}

function fileTasks(path: string, notes: TaskNotes): FoundTask[] {
  const extension = extname(path).toLowerCase();
  const read = Object.hasOwn(fileReaders, extension) ? fileReaders[extension] : undefined;
  if (read !== undefined) return [{ path, read }];
  notes.refuse("is not a file of tasks", {
    hint: `give a file that ends in ${Object.keys(fileReaders).join(", ")}, or a directory with ${knownFiles()}`,
  });
  return [];
}

interface Search {
  depth: number;
  notes: TaskNotes;
  deeper: DeeperTasks;
}

function directoryTasks(path: string, { depth, notes, deeper }: Search): FoundTask[] {
  const entries = childrenOf(path, notes);
  const reader = readerOf(entries);
  if (reader !== undefined) return [{ path, read: reader.read }];
  const directories = searched(entries).map((name) => join(path, name));
  if (depth < MAX_DEPTH)
    return directories.flatMap((directory) => directoryTasks(directory, { depth: depth + 1, notes, deeper }));
  deeper.look(directories);
  return [];
}

function readerOf(entries: readonly Dirent[]): (typeof directoryReaders)[number] | undefined {
  const names = new Set(entries.map(({ name }) => name));
  return directoryReaders.find(({ files }) => files.every((file) => names.has(file)));
}

function searched(entries: readonly Dirent[]): string[] {
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules")
    .map(({ name }) => name);
}

/** Tasks below the depth to which they are read, so that nobody misses them without a word. */
class DeeperTasks {
  readonly #root: string;
  readonly #found: string[] = [];
  #looked = 0;

  constructor(root: string) {
    this.#root = root;
  }

  look(directories: readonly string[], depth = MAX_DEPTH + 1): void {
    for (const directory of directories) {
      if (depth > MAX_LOOKED_DEPTH || ++this.#looked > MAX_LOOKED) return;
      // A directory that cannot be read here would not be read anyway.
      const entries = childrenOf(directory, new TaskNotes(directory));
      if (readerOf(entries) !== undefined) this.#found.push(relative(this.#root, directory));
      else
        this.look(
          searched(entries).map((name) => join(directory, name)),
          depth + 1,
        );
    }
  }

  /** Null if there are none. */
  text(): string | null {
    if (this.#found.length === 0) return null;
    const left = this.#found.length - SHOWN_DEEPER;
    const named = this.#found.slice(0, SHOWN_DEEPER).map(shown).join(", ");
    return `tasks more than ${MAX_DEPTH} levels below are not read: ${named}${left > 0 ? ` and ${left} more` : ""}`;
  }
}

function childrenOf(path: string, notes: TaskNotes): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    notes.refuse(`cannot be read: ${systemReason(error)}`, { file: path });
    return [];
  }
}

function knownFiles(): string {
  return [...new Set(directoryReaders.map(({ files: [first] }) => first))].join(", ");
}
