import { describe, expect, it } from "vitest";
import { runAttempts } from "../../../../../src/batch/runs/batch/run-batch.js";
import { gradeSealed } from "../../../../../src/batch/runs/seal/grade-sealed.js";
import { batchOptions, temporaryFolder } from "../../../../support/batch-runs.js";
import { infrastructure, playedResult, playedRunner } from "../../../../support/played-attempts.js";
import { gradableTask, leavesArtifacts } from "../../../../support/played-runs.js";

describe("what was sealed", () => {
  it("is graded again, once more if the infrastructure loses a grade, and where that can be done", async () => {
    const folder = await temporaryFolder();
    const [step] = gradableTask("x").steps;
    if (step === undefined) throw new TypeError("no step");
    const shared = { ...step, verifier: { ...step.verifier, mode: "shared" as const } };
    const tasks = [gradableTask("first"), gradableTask("second", { steps: [shared] })];
    await runAttempts(batchOptions(folder, { tasks, runner: playedRunner({ play: leavesArtifacts }) }));
    const asked: string[] = [];
    const graded = await gradeSealed(folder, {
      tasks,
      signal: new AbortController().signal,
      grade: async ({ task }) => {
        asked.push(task.name);
        if (asked.length === 1) return playedResult({ ...infrastructure, status: "unscored" });
        return playedResult({ task: task.name, reward: 0, rewards: { reward: 0 } });
      },
    });
    expect(graded.map(({ task, outcome }) => [task, outcome.kind]).toSorted()).toEqual([
      ["first", "same"],
      ["second", "left-out"],
    ]);
    expect(asked).toEqual(["first", "first"]);
  });
});
