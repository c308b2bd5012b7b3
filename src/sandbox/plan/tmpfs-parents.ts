import { directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";

/**
 * Finds directories to mount read-only between a tmpfs and a root that is mounted below it. These directories
 * exist only in the tmpfs, so commands could otherwise rename them and put a forged tree in their place. One
 * mount at the outermost suffices: a mount point cannot be renamed, and what the engine creates inside a
 * read-only mount cannot be changed.
 */
export function findTmpfsParents(roots: readonly string[], tmpfs: readonly { path: string }[]): string[] {
  const parents = roots.flatMap((root) => {
    const innermost = tmpfs
      .map(({ path }) => path)
      .filter((path) => isBelow(root, path))
      .toSorted((a, b) => b.length - a.length)[0];
    return innermost === undefined ? [] : directoriesBetween(innermost, root).slice(0, 1);
  });
  return [...new Set(parents)].filter((parent) => !roots.some((root) => isAtOrBelow(parent, root)));
}
