import { posix } from "node:path";
import type { PatchFiles } from "./patch-files.js";

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
