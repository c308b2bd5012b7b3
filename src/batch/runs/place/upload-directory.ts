import { readdir, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { BrigError, isBrigError } from "../../../errors.js";
import { pause } from "../../../lib/time/pause.js";
import type { Engine, Sandbox, TarEntry } from "../../../sandbox/index.js";
import { containerOf, streamTar } from "../../../sandbox/index.js";
import type { TaskCopy } from "../../tasks/task.js";
import { hostEntry } from "./host-entry.js";
import { makeDirectories } from "./make-directories.js";

export interface UploadOptions {
  /** Absolute in the container. */
  to: string;
  /** Owner of what is uploaded. Default: root. */
  owner?: { uid: number; gid: number } | undefined;
  /** Files of these names, relative to the directory, are made executable. */
  executable?: readonly string[] | undefined;
  /** Paths relative to the directory that are left out, with all that is in them. */
  exclude?: readonly string[] | undefined;
}

/** Whether a relative path is one of these, or below one of them. */
export function isLeftOut(path: string, exclude: readonly string[]): boolean {
  return exclude.some((one) => path === one || path.startsWith(`${one}/`));
}

/**
 * Copies what a directory of the host contains to a directory of the container, which need not exist. Links are
 * copied as links. Error: `usage.invalid` for a device, FIFO or socket.
 */
export async function uploadDirectory(
  sandbox: Sandbox,
  directory: string,
  { to, owner = { uid: 0, gid: 0 }, executable = [], exclude = [] }: UploadOptions,
): Promise<void> {
  await makeDirectories(sandbox, [{ path: to, mode: 0o755, owner }]);
  const { engine, containerId } = containerOf(sandbox);
  await engine.putArchive(containerId, to, streamTar(entriesOf(directory, { owner, executable, exclude })));
}

/** Copies a file or a directory of a task to its place. A file there is replaced. Errors: as above. */
export async function uploadCopy(
  sandbox: Sandbox,
  { source, target, exclude, isReadOnly }: TaskCopy,
  user: { uid: number; gid: number },
): Promise<void> {
  const owner = isReadOnly ? { uid: 0, gid: 0 } : user;
  if ((await stat(source)).isDirectory())
    return await uploadDirectory(sandbox, source, { to: target, owner, exclude });
  const directory = posix.dirname(target);
  await makeDirectories(sandbox, [{ path: directory, mode: 0o755, owner: { uid: 0, gid: 0 } }]);
  const { engine, containerId } = containerOf(sandbox);
  const entry = await entryOf(source, { path: posix.basename(target), owner });
  await engine.putArchive(containerId, directory, streamTar([entry]));
}

type PackRules = Required<Pick<UploadOptions, "owner" | "executable" | "exclude">>;

async function* entriesOf(root: string, rules: PackRules, below = ""): AsyncGenerator<TarEntry> {
  const { owner, executable, exclude } = rules;
  for (const name of (await readdir(join(root, below))).toSorted()) {
    const path = posix.join(below, name);
    if (isLeftOut(path, exclude)) continue;
    const entry = await entryOf(join(root, path), { path, owner });
    yield executable.includes(path) ? { ...entry, mode: entry.mode | 0o555 } : entry;
    if (entry.kind === "directory") yield* entriesOf(root, rules, path);
  }
}

async function entryOf(file: string, header: Pick<TarEntry, "path" | "owner">): Promise<TarEntry> {
  const entry = await hostEntry(file, header);
  if (entry === null) throw notCopied(file);
  return entry;
}

function notCopied(path: string): BrigError {
  return new BrigError(`${JSON.stringify(path)} is neither a file, a directory nor a link`, {
    code: "usage.invalid",
    hint: "remove it from the task",
  });
}

/** A directory that brig made in a container, with nothing in it. */
export interface EmptyDirectory {
  path: string;
  mode: number;
  uid: number;
  gid: number;
  modifiedMs: number;
}

/**
 * The clock that files have their times from may stand still for so long: a directory that is written to sooner after
 * it was made could keep its time.
 */
const CLOCK_TICK_MS = 20;

/** Resolves when a write to a directory that was made at this `performance.now()` would change its time. */
export async function timesTellApart(madeAt: number, signal: AbortSignal | undefined): Promise<void> {
  const left = madeAt + CLOCK_TICK_MS - performance.now();
  if (left > 0) await pause(left, signal);
}

/** The new directories that contain none of the others. */
export async function emptyDirectories(sandbox: Sandbox, made: readonly string[]): Promise<EmptyDirectory[]> {
  const above = new Set(made.map((path) => posix.dirname(path)));
  const found = await Promise.all(
    made.filter((path) => !above.has(path)).map((path) => emptyDirectory(sandbox, path)),
  );
  return found.filter((one) => one !== null);
}

/**
 * The directories that are as they were when they were made, as the runner sees them. Asked before the container is
 * stopped, since the engine says nothing of owners and contents without reading the whole directory.
 */
export async function stillEmpty(
  sandbox: Sandbox,
  directories: readonly EmptyDirectory[],
): Promise<EmptyDirectory[]> {
  const found = await Promise.all(directories.map(({ path }) => emptyDirectory(sandbox, path)));
  return directories.filter((directory, index) => isSame(directory, found[index] ?? null));
}

/**
 * The directories that nothing was written to since, as the engine sees them in the stopped container. If a process of
 * an agent wrote in between and set the former time, that is not seen and stays behind. Errors: the engine's.
 */
export async function untouched(
  { engine, containerId }: { engine: Pick<Engine, "statPath">; containerId: string },
  directories: readonly EmptyDirectory[],
  signal: AbortSignal | undefined,
): Promise<EmptyDirectory[]> {
  const found = await Promise.all(
    directories.map(({ path }) => engine.statPath(containerId, path, signal && { signal })),
  );
  return directories.filter(({ mode, modifiedMs }, index) => {
    const now = found[index];
    return now?.isDirectory === true && now.mode === mode && now.modifiedMs === modifiedMs;
  });
}

/** Null if it is no directory, or not empty, or cannot be asked for. */
async function emptyDirectory({ files }: Sandbox, path: string): Promise<EmptyDirectory | null> {
  try {
    const found = await files.stat(path, { followSymlinks: false });
    if (found.type !== "directory" || !(await isEmpty(files, path))) return null;
    const { mode, uid, gid, modifiedMs } = found;
    return { path, mode: mode & 0o7777, uid, gid, modifiedMs };
  } catch (error) {
    if (isBrigError(error)) return null;
    throw error;
  }
}

/** There may be millions of names, of which the first is enough. */
async function isEmpty(files: Sandbox["files"], path: string): Promise<boolean> {
  const enough = new AbortController();
  const onEntries = (entries: readonly unknown[]) => {
    if (entries.length > 0) enough.abort();
  };
  await files.list(path, { onEntries, signal: enough.signal }).catch((error: unknown) => {
    if (!enough.signal.aborted) throw error;
  });
  return !enough.signal.aborted;
}

function isSame(one: EmptyDirectory, other: EmptyDirectory | null): boolean {
  return (
    other !== null &&
    one.mode === other.mode &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.modifiedMs === other.modifiedMs
  );
}
