import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeReports } from "../../../../src/batch/report/write-reports.js";
import { runAttempts } from "../../../../src/batch/runs/batch/run-batch.js";
import type { AttemptResult } from "../../../../src/batch/runs/results/attempt-result.js";
import { batchOptions, temporaryFolder } from "../../../support/batch-runs.js";
import { playedResult, playedRunner, playedTask, playedTasks } from "../../../support/played-attempts.js";

const { files } = playedResult();

describe("the reports of a run", () => {
  it("are summary.json and junit.xml", async () => {
    const folder = await temporaryFolder();
    const outcome = await runAttempts(batchOptions(folder, { tasks: playedTasks(2) }));
    const summary = await writeReports(folder, outcome);
    expect(JSON.parse(await readFile(join(folder, "summary.json"), "utf8"))).toEqual(summary);
    expect(await readFile(join(folder, "junit.xml"), "utf8")).toContain('tests="2"');
    await expect(readFile(join(folder, "preds.jsonl"))).rejects.toThrow("ENOENT");
  });

  it("are also the predictions for tasks of SWE-bench: a patch, or null", async () => {
    const folder = await temporaryFolder();
    const tasks = ["whole", "none", "outside"].map((name) => playedTask(name, { format: "swe-bench" }));
    const diffs: Record<string, string | null> = {
      whole: "diff.patch",
      none: null,
      outside: "../../whole/1/diff.patch",
    };
    const runner = playedRunner({
      play: async ({ task, folder: attempt }): Promise<Partial<AttemptResult>> => {
        await writeFile(join(attempt, "diff.patch"), "--- a\r\n");
        return { files: { ...files, diff: diffs[task.name] ?? null } };
      },
    });
    await writeReports(
      folder,
      await runAttempts(
        batchOptions(folder, { tasks: [...tasks, playedTask("plain")], runner, concurrency: 1 }),
      ),
    );
    const lines = (await readFile(join(folder, "preds.jsonl"), "utf8")).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { instance_id: "whole", model_name_or_path: "nop", model_patch: "--- a\r\n" },
      { instance_id: "none", model_name_or_path: "nop", model_patch: null },
      { instance_id: "outside", model_name_or_path: "nop", model_patch: null },
    ]);
  });
});
