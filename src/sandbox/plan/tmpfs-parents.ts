import { directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";

/**
 * A directory of the host below a tmpfs has parents there that exist only in memory, and that commands could rename and put a
 * forged tree in their place. The outermost of them becomes a read-only mount of its own: a mount point cannot be renamed, and
 * what the engine makes in it cannot be changed.
 */
export function findParents(roots: readonly string[], tmpfs: readonly { path: string }[]): string[] {
  const parents = roots.flatMap((root) => {
    const innermost = tmpfs
      .map(({ path }) => path)
      .filter((path) => isBelow(root, path))
      .toSorted((a, b) => b.length - a.length)[0];
    return innermost === undefined ? [] : directoriesBetween(innermost, root).slice(0, 1);
  });
  return [...new Set(parents)].filter((parent) => !roots.some((root) => isAtOrBelow(parent, root)));
}
