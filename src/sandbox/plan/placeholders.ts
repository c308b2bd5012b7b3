import { lstat, mkdir, readdir, rmdir } from "node:fs/promises";
import type { Engine } from "../../docker/engine-types.js";
import { BrigError } from "../../errors.js";
import { LABELS } from "../labels.js";

/** Directories made on the host so that absent protected names could be mounted read-only. */
export interface Placeholders {
  /** Those this session made or took over, and so has to remove. */
  made: readonly string[];
  /** With inodes: what a record keeps of them. */
  places: readonly { path: string; ino: string }[];
  /** Removes those still empty. `inUse`: paths another session has mounted, which must stay. Never throws. */
  remove(inUse?: ReadonlySet<string>): Promise<void>;
}

const PLACEHOLDER_MODE = 0o555;
const WRITE_BITS = 0o222n;

interface Placeholder {
  path: string;
  ino: bigint;
}

/**
 * Makes the directories, all or none. One that appeared since the plan was made is used as it is if it is a directory,
 * and taken over if it is a placeholder of a session that was killed. Error: `policy.not-enforced`.
 */
export async function preparePlaceholders(paths: readonly string[]): Promise<Placeholders> {
  const made: Placeholder[] = [];
  try {
    for (const path of paths) {
      const placeholder = await makePlaceholder(path);
      if (placeholder !== null) made.push(placeholder);
    }
  } catch (error) {
    await removeAll(made, new Set());
    throw error;
  }
  return {
    made: made.map(({ path }) => path),
    places: made.map(({ path, ino }) => ({ path, ino: String(ino) })),
    remove: async (inUse = new Set()) => await removeAll(made, inUse),
  };
}

/** Placeholders that containers other than this session's have mounted: removing one on the host would unmount it there. */
export async function placeholdersInUse(
  engine: Pick<Engine, "listContainers">,
  sessionId: string,
): Promise<Set<string>> {
  const containers = await engine.listContainers([LABELS.placeholders]);
  const others = containers.filter(({ labels }) => labels[LABELS.session] !== sessionId);
  return new Set(others.flatMap(({ labels }) => readPlaceholdersLabel(labels)));
}

/** Nobody makes an empty directory without a write bit by hand: a session that was killed left it. */
export async function isLeftPlaceholder(path: string): Promise<boolean> {
  return (await findLeftPlaceholder(path)) !== null;
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
 * Removes what a killed session left: only directories that look exactly like placeholders, and with the inode that is known. Where it is
 * not, the session was killed while it made them.
 */
export async function removeLeftPlaceholders(
  places: readonly { path: string; ino: string | null }[],
): Promise<string[]> {
  const removed: string[] = [];
  for (const { path, ino } of places) {
    const left = await findLeftPlaceholder(path);
    const isIt = left !== null && (ino === null || String(left.ino) === ino);
    if (isIt && (await removePlaceholder(left))) removed.push(path);
  }
  return removed;
}

async function makePlaceholder(path: string): Promise<Placeholder | null> {
  try {
    await mkdir(path, { mode: PLACEHOLDER_MODE });
  } catch (cause) {
    if (errorCode(cause) !== "EEXIST") throw notMade(path, cause);
    const stat = await lstat(path).catch(() => null);
    if (stat === null || !stat.isDirectory()) throw notMade(path, cause);
    return await findLeftPlaceholder(path);
  }
  const { ino } = await lstat(path, { bigint: true });
  return { path, ino };
}

async function findLeftPlaceholder(path: string): Promise<Placeholder | null> {
  const stat = await lstat(path, { bigint: true }).catch(() => null);
  if (stat === null || !stat.isDirectory() || (stat.mode & WRITE_BITS) !== 0n) return null;
  const entries = await readdir(path).catch(() => null);
  return entries?.length === 0 ? { path, ino: stat.ino } : null;
}

async function removeAll(placeholders: readonly Placeholder[], inUse: ReadonlySet<string>): Promise<void> {
  for (const placeholder of placeholders)
    if (!inUse.has(placeholder.path)) await removePlaceholder(placeholder);
}

/** Rmdir takes neither a link nor a directory with something in it. */
async function removePlaceholder({ path, ino }: Placeholder): Promise<boolean> {
  const stat = await lstat(path, { bigint: true }).catch(() => null);
  if (stat?.ino !== ino) return false;
  return await rmdir(path).then(
    () => true,
    () => false,
  );
}

function notMade(path: string, cause: unknown): BrigError {
  return new BrigError(`${JSON.stringify(path)} cannot be kept from being created: ${errorCode(cause)}`, {
    code: "policy.not-enforced",
    hint: "brig makes an empty directory there to mount read-only: make its parent writable, or use --sandbox read-only",
    cause,
  });
}

function errorCode(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
}
