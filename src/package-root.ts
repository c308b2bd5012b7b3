import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The nearest directory above with a package.json, whether this file runs from src, dist or a bundle. */
export const packageRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(directory: string): string {
  const parent = dirname(directory);
  return existsSync(join(directory, "package.json")) || parent === directory ? directory : findRoot(parent);
}
