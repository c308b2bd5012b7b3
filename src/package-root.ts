import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The nearest directory above that holds the sandbox policies, whether this file runs from src, dist or a
 * bundle. A package.json would not do, since the bundled command line has one of its own in dist/cli.
 */
export const packageRoot: string = findRoot(import.meta.dirname);

/** What starts brig, for another program: Node, and brig's main file. */
export const brigProgram: readonly [string, string] = [
  process.execPath,
  join(packageRoot, "dist/cli/main.js"),
];

function findRoot(directory: string): string {
  const parent = dirname(directory);
  return existsSync(join(directory, "sandbox-policies")) || parent === directory
    ? directory
    : findRoot(parent);
}
