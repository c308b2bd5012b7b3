import { posix } from "node:path";
import type { ContainerChange } from "../../../sandbox/index.js";
import { isRefusedByGit } from "../../../sandbox/index.js";
import { isReserved } from "../artifacts/artifact-paths.js";

/** Directories whose changes are no work on the task, for containers whose working directory is `/`. */
const UNINTERESTING = ["/logs", "/tmp", "/run", "/var/log", "/var/cache", "/root/.cache"];

export interface ChangedPath {
  kind: ContainerChange["kind"];
  /** Absolute in the container. */
  path: string;
  /** Path below the working directory. */
  name: string;
}

/**
 * The changed files below the working directory; of directories only what is in them, and what was deleted. The
 * administrative files of git are left out. Changed and deleted ones come first: of added ones there may be thousands,
 * such as installed packages. Last come directories with changes in them, which may have been files or links before.
 */
export function changedPaths(changes: readonly ContainerChange[], cwd: string): ChangedPath[] {
  const root = cwd === "/" ? "/" : `${cwd}/`;
  const present = changes.filter(({ kind }) => kind !== "deleted");
  const directories = new Set(present.map(({ path }) => posix.dirname(path)));
  const found = changes.flatMap(({ kind, path }): ChangedPath[] => {
    if (!path.startsWith(root) || isReserved(path)) return [];
    if (kind === "added" && directories.has(path)) return [];
    const name = path.slice(root.length);
    if (!isBelow(name) || isRefusedByGit(Buffer.from(name), { isLink: false })) return [];
    if (cwd === "/" && UNINTERESTING.some((one) => path === one || path.startsWith(`${one}/`))) return [];
    return [{ kind, path, name }];
  });
  const rank = ({ kind, path }: ChangedPath) =>
    kind === "changed" && directories.has(path) ? 2 : kind === "added" ? 1 : 0;
  return found.toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

function isBelow(name: string): boolean {
  return name.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/** The engine writes U+FFFD in place of bytes that are no text, so nobody can tell which file it is. */
export function isUnnamed({ name }: Pick<ChangedPath, "name">): boolean {
  return name.includes("\uFFFD");
}
