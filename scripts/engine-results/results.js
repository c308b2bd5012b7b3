import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What was kept of each engine, in the order of the files' names. */
export async function readResults(directory) {
  const names = (await readdir(directory)).filter((name) => name.endsWith(".json"));
  return await Promise.all(
    names.toSorted().map(async (name) => JSON.parse(await readFile(join(directory, name), "utf8"))),
  );
}
