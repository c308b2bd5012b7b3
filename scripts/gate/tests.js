import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../setup/run.js";

/** The test files in a directory of the project, with all of its folders. */
export async function testsOf(directory) {
  const names = await readdir(join(root, directory), { recursive: true });
  return names
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `${directory}/${name}`)
    .sort();
}
