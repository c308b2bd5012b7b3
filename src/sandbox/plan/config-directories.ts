import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { decodeBytePath, stepsTo, toBytePath } from "../git/byte-paths.js";
import { isBelow } from "./paths.js";

/**
 * Finds brig's and Codex's configuration directories, and the `config.toml` of each, where they lie in a
 * writable directory. The next start obeys them: a command that could write there would decide who receives
 * the API key. Returns paths without symbolic links, whether they exist or not. Error: `workspace.invalid`
 * for a path that a command could redirect.
 */
export function findConfigPaths(directories: readonly string[], writable: readonly string[]): string[] {
  const isInWritable = (path: string) => writable.some((root) => isBelow(path, root));
  const found = new Set<string>();
  for (const path of directories.flatMap((directory) => [directory, join(directory, "config.toml")])) {
    const steps = stepsTo(toBytePath(path)).map((step) => ({ ...step, path: decodeBytePath(step.path) }));
    const target = steps.at(-1)?.path ?? "/";
    const link = steps.find((step) => step.isLink && isInWritable(step.path));
    if (link !== undefined) throw replaceable(link.path, { path, target });
    if (writable.includes(target)) throw writableItself(target);
    if (isInWritable(target)) found.add(target);
  }
  return [...found];
}

/** The error for a path that does not exist: it cannot be mounted read-only, so a command could create it. */
export function missingConfigPath(path: string): BrigError {
  return new BrigError(
    `the configuration is looked for in ${JSON.stringify(path)}, which does not exist and which a command could create`,
    {
      code: "workspace.invalid",
      hint: "create it, set BRIG_HOME or CODEX_HOME to a directory outside the workspace, or use --sandbox read-only",
    },
  );
}

function replaceable(link: string, { path, target }: { path: string; target: string }): BrigError {
  return new BrigError(
    `${JSON.stringify(link)}, on the way to ${JSON.stringify(path)}, is a symbolic link that a command could replace`,
    {
      code: "workspace.invalid",
      hint: `it leads to ${JSON.stringify(target)}: set BRIG_HOME or CODEX_HOME so that no link is in the workspace, or use --sandbox read-only`,
    },
  );
}

function writableItself(directory: string): BrigError {
  return new BrigError(
    `commands may not write to ${JSON.stringify(directory)}: the next start obeys its config.toml`,
    {
      code: "workspace.invalid",
      hint: "use another directory as the workspace, set BRIG_HOME or CODEX_HOME to another one, or use --sandbox read-only",
    },
  );
}
