import { join } from "node:path";
import { readTextFile } from "../../../lib/bounded-file.js";
import type { BatchFile } from "../../runs/batch/batch-settings.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { attemptFolder } from "../../runs/results/run-files.js";

const MAX_PATCH_BYTES = 64 * 1024 * 1024;

/**
 * The predictions that SWE-bench's own harness grades: what the first attempt at each of its tasks changed. The
 * patch is null if the attempt left none.
 */
export async function* predictions(
  { tasks, settings: { agent } }: BatchFile,
  { folder, results }: { folder: string; results: AsyncIterable<AttemptResult> },
): AsyncGenerator<string> {
  const names = new Set(tasks.filter(({ format }) => format === "swe-bench").map(({ name }) => name));
  for await (const result of results) {
    if (result.attempt !== 1 || !names.has(result.task)) continue;
    const line = {
      instance_id: result.task,
      model_name_or_path: agent.model ?? agent.name,
      model_patch: await patchOf(result, folder),
    };
    yield `${JSON.stringify(line)}\n`;
  }
}

async function patchOf(result: AttemptResult, folder: string): Promise<string | null> {
  const { diff } = result.files;
  // The path is in a file of the run, which others may have written.
  if (diff === null || diff.startsWith("/") || diff.split("/").includes("..")) return null;
  const read = await readTextFile(join(folder, attemptFolder(result), diff), MAX_PATCH_BYTES);
  return read.kind === "text" ? read.text : null;
}
