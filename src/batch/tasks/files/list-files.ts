import { type Dirent, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { formatBytes } from "../../../lib/bytes.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { shown } from "../notes/fault-text.js";
import type { TaskNotes } from "../notes/task-notes.js";
import { CHUNK_BYTES, hashFile } from "./read-file.js";
import { TaskTree, type TreeEntry } from "./task-tree.js";

export interface ListOptions {
  notes: TaskNotes;
  /** The names in the task's directory that belong to the task. Default: all. */
  names?: readonly string[] | undefined;
  limits?: Partial<TreeLimits> | undefined;
  signal?: AbortSignal | undefined;
}

export interface TreeLimits {
  maxEntries: number;
  maxBytes: number;
  maxDepth: number;
}

const defaultLimits: TreeLimits = { maxEntries: 200_000, maxBytes: 8 * 1024 ** 3, maxDepth: 64 };

/**
 * Lists and hashes the files of a task. Refused, as faults in the notes: links that lead out of the task, files
 * that are neither regular files nor directories nor links, names that cannot be shown, and more than the limits.
 */
export async function listTaskFiles(root: string, options: ListOptions): Promise<TaskTree> {
  const listing = new Listing(root, options);
  await listing.list("", 0);
  return new TaskTree(root, listing.entries);
}

class Listing {
  readonly entries = new Map<string, TreeEntry>();
  readonly #root: string;
  readonly #realRoot: string;
  readonly #notes: TaskNotes;
  readonly #names: readonly string[] | undefined;
  readonly #limits: TreeLimits;
  readonly #signal: AbortSignal | undefined;
  #bytes = 0;
  #bytesSincePause = 0;

  constructor(root: string, { notes, names, limits, signal }: ListOptions) {
    this.#root = root;
    this.#realRoot = realpathSync.native(root);
    this.#notes = notes;
    this.#names = names;
    this.#limits = { ...defaultLimits, ...limits };
    this.#signal = signal;
  }

  /** Whether to go on. */
  async list(directory: string, depth: number): Promise<boolean> {
    await this.#pause();
    const { maxDepth } = this.#limits;
    if (depth > maxDepth)
      return this.#end(`its directories are nested more than ${maxDepth} levels deep`, directory);
    for (const entry of this.#children(directory)) {
      const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
      if (this.entries.size >= this.#limits.maxEntries)
        return this.#end(`it has more than ${this.#limits.maxEntries} files`, directory);
      if (isNameless(entry.name)) this.#refuse("has a name that is not plain UTF-8 text", path);
      else if (!(await this.#add(path, entry, depth))) return false;
    }
    return true;
  }

  /** Lists a directory in an order that does not depend on the file system. */
  #children(directory: string): Dirent[] {
    try {
      const names = directory === "" ? this.#names : undefined;
      return readdirSync(join(this.#root, directory), { withFileTypes: true })
        .filter(({ name }) => names === undefined || names.includes(name))
        .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    } catch (error) {
      this.#refuse(`cannot be read: ${systemReason(error)}`, directory);
      return [];
    }
  }

  async #add(path: string, entry: Dirent, depth: number): Promise<boolean> {
    if (entry.isDirectory()) {
      this.entries.set(path, { kind: "directory", path });
      return await this.list(path, depth + 1);
    }
    if (entry.isSymbolicLink()) this.#addLink(path);
    else if (entry.isFile()) return await this.#addFile(path);
    else this.#refuse("is neither a file nor a directory nor a symbolic link", path);
    return true;
  }

  #addLink(path: string): void {
    const target = readlinkSync(join(this.#root, path));
    if (this.#leadsOut(path, target))
      this.#refuse(`is a symbolic link to ${shown(target)}, which is outside of the task`, path);
    else this.entries.set(path, { kind: "link", path, target });
  }

  /** Whether a link leads out, by its text or by what the file system makes of it, which differs after a link to a directory. */
  #leadsOut(path: string, target: string): boolean {
    if (isOutside(resolve("/task", dirname(path), target), "/task")) return true;
    try {
      // This does not use realpathSync, which takes ".." out of the target of a link before it follows it.
      return isOutside(realpathSync.native(join(this.#root, path)), this.#realRoot);
    } catch (error) {
      // A link to nothing is harmless.
      return errnoOf(error) !== "ENOENT";
    }
  }

  async #addFile(path: string): Promise<boolean> {
    const absolute = join(this.#root, path);
    const { maxBytes } = this.#limits;
    try {
      const onChunk = () => this.#pause(CHUNK_BYTES);
      const file = await hashFile(absolute, { maxBytes: maxBytes - this.#bytes, onChunk });
      if (file === "too-large") return this.#end(`its files have more than ${formatBytes(maxBytes)}`, path);
      if (file === "not-a-file") this.#refuse("is not a regular file", path);
      else {
        this.#bytes += file.bytes;
        this.entries.set(path, { kind: "file", path, ...file });
        await this.#pause(file.bytes);
      }
    } catch (error) {
      if (this.#signal?.aborted) throw error;
      this.#refuse(`cannot be read: ${systemReason(error)}`, path);
    }
    return true;
  }

  /** Lets other work, and a signal, have their turn now and then. */
  async #pause(bytes = 0): Promise<void> {
    this.#bytesSincePause += bytes + 1024;
    if (this.#bytesSincePause < 4 * CHUNK_BYTES) return;
    this.#bytesSincePause = 0;
    await setImmediate();
    this.#signal?.throwIfAborted();
  }

  #refuse(problem: string, path: string): void {
    this.#notes.refuse(problem, path === "" ? {} : { file: path });
  }

  #end(problem: string, path: string): false {
    this.#refuse(problem, path);
    return false;
  }
}

function isOutside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === ".." || way.startsWith("../");
}

/** Contains control characters, or bytes that are not UTF-8, for which Node gives U+FFFD. */
function isNameless(name: string): boolean {
  return /[\p{Cc}\u2028-\u202e\u2066-\u2069\ufffd]/u.test(name);
}
