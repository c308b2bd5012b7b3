import { basename } from "node:path";

const MAX_CHARACTERS = 200;

/** The name of a task is also the name of a folder of its results. */
export function isTaskName(name: string): boolean {
  return (
    name.length <= MAX_CHARACTERS &&
    /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)?$/.test(name) &&
    !name.includes("..")
  );
}

/** Name for a task that does not give itself one: that of its directory, with "-" for spaces and whatever else names may not have. */
export function nameOfDirectory(directory: string): string {
  return basename(directory).replace(/[^A-Za-z0-9._-]+/g, "-");
}

export const nameRule = "a name consists of letters, digits and ._- with at most one /, as in org/name";
