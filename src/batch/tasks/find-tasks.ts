import { type Dirent, readdirSync, statSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { readHarborTask } from "./harbor/read-task.js";
import { shown } from "./notes/fault-text.js";
import { TaskNotes } from "./notes/task-notes.js";
import { readPlainFile } from "./plain/read-file.js";
import type { ReadOptions, ReadTask } from "./read-task.js";
import { hasInstances, readSweBenchFile } from "./swe-bench/read-file.js";
import { readSweBenchTask, readTaskRepository } from "./swe-bench/read-repository.js";
import { readTerminalBenchTask } from "./terminal-bench/read-task.js";

/** Reads what is at a path: one task, or several. */
type Reader = (path: string, options: ReadOptions) => Promise<readonly ReadTask[]>;

export interface FoundTask {
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
export function findTasks(path: string, notes: TaskNotes): FoundTask[] {
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
