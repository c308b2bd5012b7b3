import { readdir } from "node:fs/promises";
import { errnoOf } from "../errno.js";

/** The names in a directory; none if the directory does not exist. Other errors are those of the system. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}
