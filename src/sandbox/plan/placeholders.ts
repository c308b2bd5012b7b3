import { lstat, mkdir, readdir, rmdir } from "node:fs/promises";
import type { Engine } from "../../docker/engine-types.js";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { LABELS } from "../labels.js";

/** Empty directories on the host, so that absent protected names could be mounted read-only. */
export interface Placeholders {
  /** The directories that this session created or took over, and so has to remove. */
  made: readonly { path: string; ino: string }[];
  /** Removes those that are still empty and not in `inUse` by another session. Never throws. */
  remove(inUse?: ReadonlySet<string>): Promise<void>;
}

const PLACEHOLDER_MODE = 0o555;
const WRITE_BITS = 0o222n;

interface Placeholder {
  path: string;
  ino: bigint;
}

/**
 * Creates all directories or none. Accepts one that has appeared meanwhile, and takes over the placeholder of
 * a killed session. Error: `policy.not-enforced`.
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
    made: made.map(({ path, ino }) => ({ path, ino: String(ino) })),
    remove: async (inUse = new Set()) => await removeAll(made, inUse),
  };
}

/** Placeholders mounted by other sessions: removing one on the host would unmount it there. */
export async function placeholdersInUse(
  engine: Pick<Engine, "listContainers">,
  sessionId: string,
): Promise<Set<string>> {
  const containers = await engine.listContainers([LABELS.placeholders]);
  const others = containers.filter(({ labels }) => labels[LABELS.session] !== sessionId);
  return new Set(others.flatMap(({ labels }) => readPlaceholdersLabel(labels)));
}

/** People do not create empty directories without write permission: a killed session left it. */
export async function isAbandonedPlaceholder(path: string): Promise<boolean> {
  return (await findAbandonedPlaceholder(path)) !== null;
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
    const found = await findAbandonedPlaceholder(path);
    const isSame = found !== null && (ino === null || String(found.ino) === ino);
    if (isSame && (await removePlaceholder(found))) removed.push(path);
  }
  return removed;
}

async function makePlaceholder(path: string): Promise<Placeholder | null> {
  try {
    await mkdir(path, { mode: PLACEHOLDER_MODE });
  } catch (cause) {
    if (errnoOf(cause) !== "EEXIST") throw notMade(path, cause);
    const stat = await lstat(path).catch(() => null);
    if (stat === null || !stat.isDirectory()) throw notMade(path, cause);
    return await findAbandonedPlaceholder(path);
  }
  const { ino } = await lstat(path, { bigint: true });
  return { path, ino };
}

async function findAbandonedPlaceholder(path: string): Promise<Placeholder | null> {
  const stat = await lstat(path, { bigint: true }).catch(() => null);
  if (stat === null || !stat.isDirectory() || (stat.mode & WRITE_BITS) !== 0n) return null;
  const entries = await readdir(path).catch(() => null);
  return entries?.length === 0 ? { path, ino: stat.ino } : null;
}

async function removeAll(placeholders: readonly Placeholder[], inUse: ReadonlySet<string>): Promise<void> {
  for (const placeholder of placeholders)
    if (!inUse.has(placeholder.path)) await removePlaceholder(placeholder);
}

/** Uses rmdir, which removes neither a link nor a directory that is not empty. */
async function removePlaceholder({ path, ino }: Placeholder): Promise<boolean> {
  const stat = await lstat(path, { bigint: true }).catch(() => null);
  if (stat?.ino !== ino) return false;
  return await rmdir(path).then(
    () => true,
    () => false,
  );
}

function notMade(path: string, cause: unknown): BrigError {
  return new BrigError(
    `${JSON.stringify(path)} cannot be kept from being created: ${errnoOf(cause) ?? "unknown error"}`,
    {
      code: "policy.not-enforced",
      hint: "brig creates an empty directory there to mount it read-only: make its parent writable, or use --sandbox read-only",
      cause,
    },
  );
}
