import {
  type BigIntStats,
  closeSync,
  fchmodSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
} from "node:fs";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import type { Engine } from "../docker/engine-types.js";
import { LABELS } from "../labels.js";

/** Empty directories and files on the host, so that absent protected names could be mounted read-only. */
export interface Placeholders {
  /** The placeholders that this session created or took over, and so has to remove. */
  made: readonly { path: string; ino: string }[];
  /** Removes the ones that are still empty and not in `inUse` by another session. Never throws. */
  remove(inUse?: ReadonlySet<string>): Promise<void>;
}

const PLACEHOLDER_MODE = 0o555;
const FILE_MODE = 0o444;
/** The time of modification of an empty file of a session, in seconds: "brig" in ASCII, by which it is known. */
const FILE_MODIFIED = 0x62726967;
const WRITE_BITS = 0o222n;

interface Placeholder {
  path: string;
  ino: bigint;
  isFile: boolean;
}

/**
 * Creates all or none. Accepts one that has appeared meanwhile, and takes over the placeholder of a killed session.
 * `files` says which are files: git reads where it expects one, and fails if that is a directory. Error:
 * `policy.not-enforced`.
 */
export async function preparePlaceholders(
  paths: readonly string[],
  { files = [] }: { files?: readonly string[] } = {},
): Promise<Placeholders> {
  const made: Placeholder[] = [];
  try {
    for (const path of paths) {
      const placeholder = files.includes(path) ? makeFile(path) : makePlaceholder(path);
      if (placeholder !== null) made.push(placeholder);
    }
  } catch (error) {
    removeAll(made, new Set());
    throw error;
  }
  return {
    made: made.map(({ path, ino }) => ({ path, ino: String(ino) })),
    remove: async (inUse = new Set()) => removeAll(made, inUse),
  };
}

/** The placeholders that another process has made, as they were recorded. */
export function adoptPlaceholders(recorded: readonly { path: string; ino: string | null }[]): Placeholders {
  const made: Placeholder[] = recorded.flatMap(({ path, ino }) => {
    const found = findAbandonedPlaceholder(path);
    return found !== null && String(found.ino) === ino ? [found] : [];
  });
  return {
    made: made.map(({ path, ino }) => ({ path, ino: String(ino) })),
    remove: async (inUse = new Set()) => removeAll(made, inUse),
  };
}

/** Other sessions with a container, and the placeholders that they have mounted: removing one on the host would unmount it there. */
export interface PlaceholderUse {
  sessions: ReadonlySet<string>;
  paths: ReadonlySet<string>;
}

export async function placeholdersInUse(
  engine: Pick<Engine, "listContainers">,
  sessionId: string,
): Promise<PlaceholderUse> {
  const containers = await engine.listContainers([LABELS.placeholders]);
  const others = containers.filter(({ labels }) => labels[LABELS.session] !== sessionId);
  return {
    sessions: new Set(others.flatMap(({ labels }) => labels[LABELS.session] ?? [])),
    paths: new Set(others.flatMap(({ labels }) => readPlaceholdersLabel(labels))),
  };
}

/**
 * People do not create empty directories without write permission, nor files of that one date: a killed session left
 * it.
 */
export async function isAbandonedPlaceholder(path: string): Promise<boolean> {
  return findAbandonedPlaceholder(path) !== null;
}

export function readPlaceholdersLabel(labels: Readonly<Record<string, string>>): string[] {
  try {
    const paths: unknown = JSON.parse(labels[LABELS.placeholders] ?? "[]");
    return Array.isArray(paths)
      ? paths.filter((path) => typeof path === "string" && path.startsWith("/"))
      : [];
  } catch {
    return [];
  }
}

/**
 * Removes the placeholders of a killed session, and returns their paths. Each must have the recorded inode,
 * which is null if the session was killed while it created them.
 */
export async function removeAbandonedPlaceholders(
  places: readonly { path: string; ino: string | null }[],
): Promise<string[]> {
  const removed: string[] = [];
  for (const { path, ino } of places) {
    const found = findAbandonedPlaceholder(path);
    const isSame = found !== null && (ino === null || String(found.ino) === ino);
    if (isSame && removePlaceholder(found)) removed.push(path);
  }
  return removed;
}

/** This function and those below are synchronous, because short calls take a tenth of the time that way. */
function makePlaceholder(path: string): Placeholder | null {
  try {
    mkdirSync(path, { mode: PLACEHOLDER_MODE });
  } catch (cause) {
    if (errnoOf(cause) !== "EEXIST") throw notMade(path, cause);
    if (!isDirectory(path)) throw notMade(path, cause);
    return findAbandonedPlaceholder(path);
  }
  const { ino } = lstatSync(path, { bigint: true });
  return { path, ino, isFile: false };
}

function makeFile(path: string): Placeholder | null {
  let file: number;
  try {
    file = openSync(path, "wx", FILE_MODE);
  } catch (cause) {
    if (errnoOf(cause) !== "EEXIST" || isDirectory(path)) throw notMade(path, cause);
    return findAbandonedPlaceholder(path);
  }
  try {
    fchmodSync(file, FILE_MODE);
    futimesSync(file, FILE_MODIFIED, FILE_MODIFIED);
  } finally {
    closeSync(file);
  }
  const { ino } = lstatSync(path, { bigint: true });
  return { path, ino, isFile: true };
}

/** Whether it is an empty file that a session has made. */
export function isPlaceholderFile({ size, mtimeNs, mode }: BigIntStats): boolean {
  const isOfThatDate = mtimeNs === BigInt(FILE_MODIFIED) * 1_000_000_000n;
  return size === 0n && isOfThatDate && (mode & WRITE_BITS) === 0n;
}

function findAbandonedPlaceholder(path: string): Placeholder | null {
  try {
    const stat = lstatSync(path, { bigint: true });
    if (stat.isFile()) return isPlaceholderFile(stat) ? { path, ino: stat.ino, isFile: true } : null;
    if (!stat.isDirectory() || (stat.mode & WRITE_BITS) !== 0n) return null;
    return readdirSync(path).length === 0 ? { path, ino: stat.ino, isFile: false } : null;
  } catch {
    return null;
  }
}

function isDirectory(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

function removeAll(placeholders: readonly Placeholder[], inUse: ReadonlySet<string>): void {
  for (const placeholder of placeholders) if (!inUse.has(placeholder.path)) removePlaceholder(placeholder);
}

/** Uses rmdir, which removes neither a link nor a directory that is not empty. A file must still be as it was made. */
function removePlaceholder({ path, ino, isFile }: Placeholder): boolean {
  try {
    const stat = lstatSync(path, { bigint: true });
    if (stat.ino !== ino || (isFile && !(stat.isFile() && isPlaceholderFile(stat)))) return false;
    if (isFile) unlinkSync(path);
    else rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}

function notMade(path: string, cause: unknown): BrigError {
  return new BrigError(
    `${JSON.stringify(path)} cannot be kept from being created: ${errnoOf(cause) ?? "unknown error"}`,
    {
      code: "policy.not-enforced",
      hint: "brig creates an empty directory or file there to mount it read-only: make its parent writable, or use --sandbox read-only",
      cause,
    },
  );
}
