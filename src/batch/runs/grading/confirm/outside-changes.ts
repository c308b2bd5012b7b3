import { posix } from "node:path";
import type { ContainerChange } from "../../../../sandbox/index.js";

/** Changes that are tried together. */
export interface ChangeGroup {
  /** The path of the only change, or the directory that has all of them. */
  path: string;
  changes: readonly ContainerChange[];
}

/** With more groups there would be more halvings than gradings. */
const MAX_GROUPS = 128;

/** The kernel's, the engine's, brig's, and what is made anew for all tests. */
const notOfTheAgent =
  /^\/(?:proc|sys|dev|\.brig|tests|solution|logs|run)(?:\/|$)|^\/etc\/(?:hostname|hosts|resolv\.conf|mtab)$/;

/**
 * Changes of an agent outside of some directories: files, links, and whole directories where the topmost is new. A
 * directory in which only something has changed is not listed itself.
 */
export function changesOutside(
  changes: readonly ContainerChange[],
  roots: readonly string[],
): ContainerChange[] {
  const parents = new Set(changes.map(({ path }) => posix.dirname(path)));
  const sorted = changes.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const holdsRoot = (path: string) => roots.some((root) => isBelow(root, path));
  const whole = new Set(
    sorted.filter(({ path, kind }) => kind === "added" && !holdsRoot(path)).map(({ path }) => path),
  );
  return sorted.filter(({ path, kind }) => {
    if (notOfTheAgent.test(path) || roots.some((root) => path === root || isBelow(path, root))) return false;
    if (isInOneOf(path, whole) || holdsRoot(path)) return false;
    return kind !== "changed" || !parents.has(path);
  });
}

/** Returns each change by itself, or those of a directory together if there are too many of them. */
export function groupsOf(changes: readonly ContainerChange[]): ChangeGroup[] {
  if (changes.length <= MAX_GROUPS)
    return changes.map((change) => ({ path: change.path, changes: [change] }));
  for (let depth = DEEPEST; depth > 1; depth--) {
    const groups = groupedAt(changes, depth);
    if (groups.length <= MAX_GROUPS) return groups;
  }
  return groupedAt(changes, 1);
}

const DEEPEST = 8;

function groupedAt(changes: readonly ContainerChange[], depth: number): ChangeGroup[] {
  const groups = new Map<string, ContainerChange[]>();
  for (const change of changes) {
    const names = posix.dirname(change.path).split("/");
    const key = names.slice(0, depth + 1).join("/") || "/";
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups].map(([path, own]) => ({
    path: own.length === 1 ? (own[0]?.path ?? path) : path,
    changes: own,
  }));
}

function isInOneOf(path: string, directories: ReadonlySet<string>): boolean {
  for (let at = posix.dirname(path); at !== "/"; at = posix.dirname(at)) if (directories.has(at)) return true;
  return false;
}

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory === "/" ? "/" : `${directory}/`);
}
