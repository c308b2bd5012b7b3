import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { listTaskFiles } from "../../tasks/files.js";
import { TaskNotes } from "../../tasks/notes.js";
import type { Task } from "../../tasks/task.js";
import { type PackedTree, pack, treeEntries } from "../bundle.js";
import type { AttemptJob } from "../records.js";
import { storeKeys } from "../records.js";
import type { ObjectStore } from "../store.js";

export interface TaskPackagesOptions {
  tasks: readonly Task[];
  /** The directory or the file that each task was read from, by its name. */
  origins: ReadonlyMap<string, string>;
  store: ObjectStore;
  /** Folder for archives that are being made. */
  folder: string;
  signal: AbortSignal;
}

/**
 * Puts the files of tasks into the store. A package has what a reader needs to read the task again, with the variables of the
 * machine that reads it; so the values that tasks get from variables of this machine do not travel.
 */
export class TaskPackages {
  readonly #options: TaskPackagesOptions;
  readonly #packages = new Map<string, Promise<AttemptJob["package"]>>();

  constructor(options: TaskPackagesOptions) {
    this.#options = options;
  }

  async of(task: Task): Promise<AttemptJob["package"]> {
    const origin = this.#options.origins.get(task.name);
    if (origin === undefined) throw new TypeError(`nothing is known about the origin of ${task.name}`);
    const known = this.#packages.get(origin);
    if (known !== undefined) return await known;
    const made = this.#make(origin);
    this.#packages.set(origin, made);
    return await made;
  }

  async #make(origin: string): Promise<AttemptJob["package"]> {
    const { store, folder, signal } = this.#options;
    const { trees, path } = statSync(origin).isDirectory()
      ? await this.#directoryTrees(origin)
      : await this.#fileTrees(origin);
    const archive = join(folder, `package.${randomBytes(6).toString("hex")}.new`);
    try {
      const packed = await pack(treeEntries(trees), archive, signal);
      await store.put(storeKeys.package(packed.sha256), packed);
      return { sha256: packed.sha256, path };
    } finally {
      await rm(archive, { force: true });
    }
  }

  async #directoryTrees(origin: string): Promise<{ trees: PackedTree[]; path: string }> {
    const path = basename(origin);
    return { trees: [await this.#tree(origin, path)], path };
  }

  /** A file of rows, with the directories that its rows name, in the places that they have relative to it. */
  async #fileTrees(origin: string): Promise<{ trees: PackedTree[]; path: string }> {
    const { tasks, origins } = this.#options;
    const ofFile = tasks.filter(({ name }) => origins.get(name) === origin);
    const workspaces = [...new Set(ofFile.flatMap(({ environment }) => environment.files ?? []))];
    let base = dirname(origin);
    while (workspaces.some((workspace) => relative(base, workspace).startsWith(".."))) base = dirname(base);
    const path = relative(base, origin);
    const bytes = statSync(origin).size;
    const file = { kind: "file", path, bytes, isExecutable: false, sha256: "" } as const;
    const trees: PackedTree[] = [{ root: base, at: "", entries: [file] }];
    for (const workspace of workspaces) trees.push(await this.#tree(workspace, relative(base, workspace)));
    return { trees, path };
  }

  /** Files that the reader of the task has refused do not occur here; other files that cannot travel belong to no task. */
  async #tree(root: string, at: string): Promise<PackedTree> {
    const notes = new TaskNotes(root);
    const tree = await listTaskFiles(root, { notes, signal: this.#options.signal });
    return { root, at, entries: tree.entries() };
  }
}
