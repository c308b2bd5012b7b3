import { posix } from "node:path";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { DirectoryEntry, FileType, SandboxFiles } from "../../../sandbox/index.js";
import { describeOsError, isFileError, osErrors, osErrorText } from "../../../tools/index.js";
import { toFileUri } from "../wire/file-uri.js";
import { listAtMost } from "./bounded-list.js";

/** The part of a tree that a client asks for. The entries of the root have depth 0. */
export interface WalkOptions {
  maxDepth: number;
  /** At most this many directories are listed. */
  maxDirectories: number;
  /** At most this many entries are examined, including those that are left out of the result. */
  maxEntries: number;
  followDirectorySymlinks: boolean;
  /** Directories whose name begins with a dot are shown, but not what is in them. */
  pruneHiddenDirectories: boolean;
}

export interface WalkResult {
  entries: { path: string; kind: "file" | "directory" }[];
  errors: { path: string; message: string }[];
  /** Something is missing from the result because of one of the limits. */
  truncated: boolean;
}

/**
 * brig's own limits, which apply whatever the client asks for: the entries of one directory, and the whole
 * answer.
 */
const MAX_LISTED = 100_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The files of a sandbox, and which of them the client must not see. */
export interface WalkedFiles extends Pick<SandboxFiles, "list" | "stat"> {
  isHidden(path: string): Promise<boolean>;
}

/** A walk in progress. */
interface Walk {
  files: WalkedFiles;
  options: WalkOptions;
  signal: AbortSignal;
  result: WalkResult;
  entriesLeft: number;
  bytesLeft: number;
  /**
   * Device and inode of each listed directory. Empty unless links are followed, since only they lead to one
   * twice.
   */
  visited: Set<string>;
}

interface Directory {
  path: string;
  depth: number;
}

/**
 * Walks a tree level by level, and each directory in the order of its names. The result contains regular
 * files and directories, and an error for whatever cannot be listed. An abort ends the walk, which then
 * returns what it has found. Throws if the root itself cannot be examined.
 */
export async function walkTree(
  files: WalkedFiles,
  root: string,
  { signal, ...options }: WalkOptions & { signal: AbortSignal },
): Promise<WalkResult> {
  const result: WalkResult = { entries: [], errors: [], truncated: false };
  const walk: Walk = {
    files,
    options,
    signal,
    result,
    entriesLeft: options.maxEntries,
    bytesLeft: MAX_ANSWER_BYTES,
    visited: new Set(),
  };
  const { type } = await files.stat(root, { followSymlinks: options.followDirectorySymlinks, signal });
  // A root that is a link to itself, or to nothing, is an error even if links are not followed.
  if (type === "symlink") await files.stat(root, { signal });
  if (type !== "directory") return result;
  try {
    // A frozen sandbox does not react to an abort, so its answer is not waited for.
    await beforeAbort(lookThrough(walk, root), signal);
    return result;
  } catch (error) {
    if (!signal.aborted) throw error;
    const { entries, errors } = result;
    return { entries: [...entries], errors: [...errors], truncated: true };
  }
}

async function lookThrough(walk: Walk, root: string): Promise<void> {
  const { result } = walk;
  let level: Directory[] = [{ path: root, depth: 0 }];
  let directoriesLeft = walk.options.maxDirectories;
  while (level.length > 0 && !result.truncated) {
    const next: Directory[] = [];
    for (const directory of level) {
      if (directoriesLeft === 0) result.truncated = true;
      if (result.truncated) break;
      directoriesLeft -= 1;
      next.push(...(await lookInto(walk, directory)));
    }
    level = next;
  }
}

/**
 * Adds the entries of a directory to the result. Returns its subdirectories, which belong to the next level.
 */
async function lookInto(walk: Walk, { path, depth }: Directory): Promise<Directory[]> {
  const { result, options } = walk;
  try {
    if (options.followDirectorySymlinks && !(await isFirstVisit(walk, path))) return [];
    const { entries, hasMore } = await listAtMost(walk.files, path, {
      maxEntries: MAX_LISTED,
      signal: walk.signal,
    });
    const within: Directory[] = [];
    for (const entry of entries.toSorted((a, b) => Buffer.compare(a.nameBytes, b.nameBytes))) {
      const child = posix.join(path, entry.name);
      const isDirectory = await look(walk, child, entry);
      if (result.truncated) return [];
      const isPruned = options.pruneHiddenDirectories && entry.name.startsWith(".");
      if (isDirectory && !isPruned && depth < options.maxDepth)
        within.push({ path: child, depth: depth + 1 });
    }
    if (hasMore) result.truncated = true;
    return within;
  } catch (error) {
    if (walk.signal.aborted || !isFileError(error)) throw error;
    fail(walk, path, osErrorText(error));
    return [];
  }
}

/** Adds one entry. Returns whether it is shown as a directory. */
async function look(walk: Walk, path: string, entry: DirectoryEntry): Promise<boolean> {
  const isText = Buffer.from(entry.name).equals(entry.nameBytes);
  const found = isText ? await typesOf(walk, path, entry.type) : null;
  if (isText && (found === null || (await walk.files.isHidden(path)))) return false;
  if (walk.entriesLeft === 0) {
    walk.result.truncated = true;
    return false;
  }
  walk.entriesLeft -= 1;
  if (found === null) fail(walk, path, describeOsError(osErrors.ENOENT));
  else if (found.type === "directory" && (!found.isLink || walk.options.followDirectorySymlinks))
    return show(walk, path, "directory");
  else if (found.type === "file" && !found.isLink) show(walk, path, "file");
  return false;
}

/**
 * The type of an entry, or of what a link leads to. Null if it cannot be examined, for example because it is
 * gone.
 */
async function typesOf(
  { files, signal }: Walk,
  path: string,
  listed: FileType,
): Promise<{ type: FileType; isLink: boolean } | null> {
  try {
    const type =
      listed === "unknown" ? (await files.stat(path, { followSymlinks: false, signal })).type : listed;
    if (type !== "symlink") return { type, isLink: false };
    return { type: (await files.stat(path, { signal })).type, isLink: true };
  } catch (error) {
    if (isFileError(error)) return null;
    throw error;
  }
}

async function isFirstVisit({ files, visited, signal }: Walk, path: string): Promise<boolean> {
  const { dev, ino } = await files.stat(path, { signal });
  const identity = `${dev}:${ino}`;
  if (visited.has(identity)) return false;
  visited.add(identity);
  return true;
}

function show(walk: Walk, path: string, kind: "file" | "directory"): boolean {
  const uri = toFileUri(path);
  if (!hasRoom(walk, uri)) return false;
  walk.result.entries.push({ path: uri, kind });
  return true;
}

function fail(walk: Walk, path: string, message: string): void {
  const uri = toFileUri(path);
  if (hasRoom(walk, uri)) walk.result.errors.push({ path: uri, message });
}

function hasRoom(walk: Walk, text: string): boolean {
  walk.bytesLeft -= text.length;
  if (walk.bytesLeft < 0) walk.result.truncated = true;
  return walk.bytesLeft >= 0;
}
