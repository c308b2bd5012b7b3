import { isRepository, REPOSITORY_PARTS } from "../../git/repository-parts.js";
import type { LiveChanges } from "../live-changes.js";

/** Names in a repository that git obeys, besides those by which it recognises one. */
const OBEYED_PARTS: ReadonlySet<string> = new Set([
  ...REPOSITORY_PARTS,
  "config",
  "config.worktree",
  "gitdir",
  "hooks",
  "info",
  "modules",
  "worktrees",
]);

/**
 * The directories, relative to the workspace, that git would take for repositories once these changes were made, and
 * in which at least one of them is. A name counts that the sandbox or the host has: not all changes need be made. The
 * workspace itself is "" and is none of them if the host's is a repository already.
 */
export async function repositoriesAmong(
  changes: LiveChanges,
  paths: readonly Buffer[],
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const candidates = new Set(paths.flatMap((path) => directoriesOfParts(path.toString("latin1"))));
  const found: string[] = [];
  for (const directory of candidates) {
    const path = Buffer.from(directory, "latin1");
    const inSandbox = await changes.namesAt(path, { in: "sandbox", signal });
    const onHost = await changes.namesAt(path, { in: "host", signal });
    const isAlready = directory === "" && isRepository(partsOf(onHost));
    if (!isAlready && isRepository(partsOf([...inSandbox, ...onHost]))) found.push(directory);
  }
  return found;
}

/** Whether a change at this path, byte for byte as Latin-1, is in such a directory, or is one. */
export function isInRepository(path: string, repositories: readonly string[]): boolean {
  return repositories.some((directory) => {
    if (directory === "") return OBEYED_PARTS.has((path.split("/")[0] ?? "").toLowerCase());
    return path === directory || path.startsWith(`${directory}/`);
  });
}

function directoriesOfParts(path: string): string[] {
  const names = path.split("/");
  return names.flatMap((name, at) =>
    OBEYED_PARTS.has(name.toLowerCase()) ? [names.slice(0, at).join("/")] : [],
  );
}

function partsOf(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}
