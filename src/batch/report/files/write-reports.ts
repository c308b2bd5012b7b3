import { join } from "node:path";
import { writeDurably } from "../../../lib/files/durable-file.js";
import type { BatchOutcome } from "../../runs/batch/run-batch.js";
import { readResults } from "../../runs/results/results-file.js";
import { runFiles } from "../../runs/results/run-files.js";
import { summarise } from "../summary/summarise.js";
import type { Summary } from "../summary/summary.js";
import { junitDocument } from "./junit.js";
import { predictions } from "./predictions.js";

/** Writes `summary.json`, `junit.xml` and, for tasks of SWE-bench, `preds.jsonl`. */
export async function writeReports(
  folder: string,
  { batch, outcomes }: Pick<BatchOutcome, "batch" | "outcomes">,
): Promise<Summary> {
  const summary = summarise(batch, outcomes);
  const results = () => readResults(join(folder, runFiles.results));
  await writeDurably(join(folder, runFiles.summary), `${JSON.stringify(summary, null, 2)}\n`);
  await writeDurably(join(folder, runFiles.junit), junitDocument(summary, results()));
  if (batch.tasks.some(({ format }) => format === "swe-bench"))
    await writeDurably(
      join(folder, runFiles.predictions),
      predictions(batch, { folder, results: results() }),
    );
  return summary;
}
