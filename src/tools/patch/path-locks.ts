import { posix } from "node:path";
import type { PatchFiles } from "./patch-files.js";

type RealPaths = (paths: readonly string[]) => Promise<readonly string[]>;

interface Lock {
  paths: readonly string[];
  /** `paths` and where they lead. Only looked up when there is another lock. */
  allPaths: Promise<readonly string[]> | undefined;
  released: Promise<unknown>;
}

/**
 * Runs actions on different files at the same time. Actions whose paths are equal, or one inside the other,
 * run in the order of their calls.
 */
export class PathLocks {
  readonly #realPaths: RealPaths;
  readonly #locks = new Set<Lock>();

  constructor(realPaths: RealPaths) {
    this.#realPaths = realPaths;
  }

  run<T>(paths: readonly string[], action: () => Promise<T>): Promise<T> {
    const earlier = [...this.#locks];
    const lock: Lock = { paths, allPaths: undefined, released: Promise.resolve() };
    const result = (earlier.length === 0 ? Promise.resolve() : this.#waitFor(earlier, lock)).then(action);
    const release = () => this.#locks.delete(lock);
    lock.released = result.then(release, release);
    this.#locks.add(lock);
    return result;
  }

  async #waitFor(earlier: readonly Lock[], lock: Lock): Promise<void> {
    const paths = await this.#allPathsOf(lock);
    const waits = earlier.map(async (other) => {
      if (share(paths, await this.#allPathsOf(other))) await other.released;
    });
    await Promise.all(waits);
  }

  /** If the lookup fails, the paths count as written. The action will report what is wrong with them. */
  #allPathsOf(lock: Lock): Promise<readonly string[]> {
    lock.allPaths ??= this.#realPaths(lock.paths).then(
      (real) => [...lock.paths, ...real],
      () => lock.paths,
    );
    return lock.allPaths;
  }
}

function share(some: readonly string[], others: readonly string[]): boolean {
  return some.some((path) => others.some((other) => overlap(path, other)));
}

/** Whether two paths are equal, or one is inside the other. */
export function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}

/** The limit of the kernel. */
const MAX_LINKS = 40;

type LinkFiles = Pick<PatchFiles, "stat">;

/** Returns where absolute paths lead in the sandbox, and the links on the way. The paths need not exist. */
export async function realPaths(files: LinkFiles, paths: readonly string[]): Promise<string[]> {
  const targets = new Map<string, Promise<string | null>>();
  const targetOf = (path: string) => {
    const known = targets.get(path) ?? linkTarget(files, path);
    targets.set(path, known);
    return known;
  };
  return [...new Set((await Promise.all(paths.map((path) => walk(path, targetOf)))).flat())];
}

async function walk(path: string, targetOf: (path: string) => Promise<string | null>): Promise<string[]> {
  const links: string[] = [];
  let names = namesOf(path);
  let at = "/";
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const next = posix.join(at, name);
    const target = name === ".." ? null : await targetOf(next);
    if (target !== null && links.length < MAX_LINKS) {
      links.push(next);
      names = [...namesOf(target), ...names];
      if (target.startsWith("/")) at = "/";
    } else at = next;
  }
  return [...links, at];
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** Null if the path is not a link or cannot be read. */
async function linkTarget(files: LinkFiles, path: string): Promise<string | null> {
  const found = await files.stat(path, { followSymlinks: false }).catch(() => null);
  return found?.linkTarget ?? null;
}
