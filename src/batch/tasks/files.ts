import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
} from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { formatBytes } from "../../lib/bytes.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { decodeUtf8 } from "../../lib/utf8.js";
import { shown, type TaskNotes } from "./notes.js";
import { type TaskPart, type TaskParts, taskParts } from "./task.js";

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

/** `path` is relative to the task's directory, with `/`. */
export type TreeEntry =
  | { kind: "directory"; path: string }
  | { kind: "file"; path: string; bytes: number; isExecutable: boolean; sha256: string }
  | { kind: "link"; path: string; target: string };

/** No text that a reader parses, or that a model is given, needs to be longer. */
const MAX_TEXT_BYTES = 1024 * 1024;

/** The files of a task as they were when they were listed. */
export class TaskTree {
  readonly root: string;
  readonly #entries: ReadonlyMap<string, TreeEntry>;

  constructor(root: string, entries: ReadonlyMap<string, TreeEntry>) {
    this.root = root;
    this.#entries = entries;
  }

  entries(): Iterable<TreeEntry> {
    return this.#entries.values();
  }

  hasFile(path: string): boolean {
    return this.#entries.get(path)?.kind === "file";
  }

  hasDirectory(path: string): boolean {
    return this.#entries.get(path)?.kind === "directory";
  }

  /** Everything in a directory, at any depth. */
  below(directory: string): TreeEntry[] {
    return [...this.#entries.values()].filter(({ path }) => path.startsWith(`${directory}/`));
  }

  absolute(path: string): string {
    return join(this.root, path);
  }

  /** The text of a file. Null, with a fault in the notes, if it is missing or is no such text. */
  text(path: string, notes: TaskNotes, { hint }: { hint?: string } = {}): string | null {
    const entry = this.#entries.get(path);
    const place = { file: path, ...(hint === undefined ? {} : { hint }) };
    if (entry === undefined) notes.refuse("is missing", place);
    else if (entry.kind !== "file")
      notes.refuse(`is a ${entry.kind === "link" ? "symbolic link" : "directory"} and must be a file`, place);
    else if (entry.bytes > MAX_TEXT_BYTES)
      notes.refuse(
        `has ${formatBytes(entry.bytes)}, which is more than ${formatBytes(MAX_TEXT_BYTES)}`,
        place,
      );
    else return this.#decoded(entry, notes);
    return null;
  }

  #decoded({ path, sha256 }: { path: string; sha256: string }, notes: TaskNotes): string | null {
    const read = readWhole(this.absolute(path), MAX_TEXT_BYTES);
    if (read === null || read.sha256 !== sha256) {
      notes.refuse("was changed while it was read", { file: path });
      return null;
    }
    const decoded = decodeUtf8(read.bytes);
    if (decoded.kind === "text") return withoutMark(decoded.text);
    notes.refuse(`is not UTF-8 text: ${decoded.reason}`, { file: path });
    return null;
  }
}

/** Removes the byte order mark that some editors write. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/**
 * These calls do not yield: for the many small files of many tasks, promises take several times as long. A
 * FIFO does not block them, and a symbolic link is not followed.
 */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const CHUNK_BYTES = 1024 * 1024;

/** A whole regular file with its checksum; null if it is longer, or no regular file any more. */
function readWhole(path: string, maxBytes: number): { bytes: Buffer; sha256: string } | null {
  const file = openSync(path, FLAGS);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.size > maxBytes) return null;
    const buffer = Buffer.alloc(stat.size);
    const length = fill(file, buffer);
    const bytes = buffer.subarray(0, length);
    return { bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
  } finally {
    closeSync(file);
  }
}

interface HashedFile {
  bytes: number;
  isExecutable: boolean;
  sha256: string;
}

type HashResult = HashedFile | "not-a-file" | "too-large";

/**
 * The size is looked at first, so that a huge sparse file is not read. `onChunk` is awaited after each piece of a
 * large file.
 */
async function hashFile(
  path: string,
  { maxBytes, onChunk }: { maxBytes: number; onChunk: () => Promise<void> },
): Promise<HashResult> {
  const file = openSync(path, FLAGS);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return "not-a-file";
    if (stat.size > maxBytes) return "too-large";
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, stat.size + 1)));
    let bytes = 0;
    for (let length = fill(file, buffer); length > 0; length = fill(file, buffer)) {
      hash.update(buffer.subarray(0, length));
      bytes += length;
      if (length < buffer.length) break;
      await onChunk();
    }
    return { bytes, isExecutable: (stat.mode & 0o111) !== 0, sha256: hash.digest("hex") };
  } finally {
    closeSync(file);
  }
}

/** Reads until the buffer is full or the file ends. Returns the number of bytes read. */
function fill(file: number, buffer: Buffer): number {
  let filled = 0;
  while (filled < buffer.length) {
    const read = readSync(file, buffer, filled, buffer.length - filled, null);
    if (read === 0) break;
    filled += read;
  }
  return filled;
}

/** Contents that a checksum is made of. A part is a list of texts, whose order counts. */
export type PartContents = Readonly<Partial<Record<TaskPart, readonly string[]>>>;

export function taskChecksums(contents: PartContents): { checksum: string; parts: TaskParts } {
  const parts = Object.fromEntries(
    taskParts.map((part) => [part, sha256(JSON.stringify(contents[part] ?? []))]),
  ) as TaskParts;
  return { checksum: sha256(JSON.stringify(taskParts.map((part) => [part, parts[part]]))), parts };
}

/** One text for each file: its path, its content or its target, and whether it is executable. */
export function fileLines(entries: Iterable<TreeEntry>): string[] {
  const lines: string[] = [];
  for (const entry of entries) {
    if (entry.kind === "file")
      lines.push(JSON.stringify([entry.path, entry.isExecutable ? "program" : "file", entry.sha256]));
    if (entry.kind === "link") lines.push(JSON.stringify([entry.path, "link", entry.target]));
  }
  return lines.toSorted();
}

/** The files of a task by the part that each belongs to. */
export function partsOf(entries: Iterable<TreeEntry>, partOf: (path: string) => TaskPart): PartContents {
  const all = [...entries];
  return Object.fromEntries(
    taskParts.map((part) => [part, fileLines(all.filter(({ path }) => partOf(path) === part))]),
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
