import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AttemptResult } from "../results/attempt-result.js";
import { RESULT_FILE } from "../results/run-files.js";

/** Writes the result of an attempt so that the file is there whole or not at all, whenever the machine stops. */
export async function writeResult(folder: string, result: AttemptResult): Promise<void> {
  const temporary = join(folder, `.${RESULT_FILE}.tmp`);
  try {
    const file = await open(temporary, "w", 0o644);
    try {
      await file.writeFile(`${JSON.stringify(result, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(folder, RESULT_FILE));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
