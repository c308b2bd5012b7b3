import { describe, expect, it } from "vitest";
import type { Attack } from "../../../../src/batch/runs/attacks/attack.js";
import { attackLibrary } from "../../../../src/batch/runs/attacks/attack-library.js";
import { plantAttack } from "../../../../src/batch/runs/attacks/plant-attack.js";
import { gradeNaively, openNaiveContainer } from "../../../support/naive-grader.js";
import { type NaiveTaskName, naiveTaskOf, naiveTasks } from "../../../support/naive-tasks.js";

/** Attacks that never let the harness get a score, which it then leaves out of its mean. */
const endWithoutScore = [
  "reward-not-a-number",
  "artifact-fifo",
  "artifact-sparse",
  "artifact-many",
  "artifact-names",
];

/**
 * Whether it leaves a process that writes at any time, as the program that forges rewards does: the tests may be the last to write for a moment, or the
 * reward is read while it is being written.
 */
function goesOnWriting({ name, script }: Attack): boolean {
  return (
    ["reward-fifo", "background-writer", "background-waiter", "artifact-writes-reward"].includes(name) ||
    script.includes("$FORGE")
  );
}

describe.concurrent("a grader that defends itself against nothing", () => {
  it.each(Object.entries(naiveTasks))(
    "scores 0 for no work at the task %s, 1 for the solution",
    async (_, task) => {
      await using sandbox = await openNaiveContainer(task);
      expect(await gradeNaively(sandbox, task)).toBe(0);
      await sandbox.files.remove("/tests", { recursive: true });
      expect(await sandbox.exec(["bash", "-c", task.solution], { cwd: "/app" })).toMatchObject({
        exitCode: 0,
      });
      expect(await gradeNaively(sandbox, task)).toBe(1);
    },
  );

  it.each(proofs())("is deceived by $attack.name at the task $taskName", async ({ attack, taskName }) => {
    const task = naiveTasks[taskName];
    await using sandbox = await openNaiveContainer(task);
    const planted = await plantAttack(sandbox, attack, { cwd: "/app", artifacts: task.artifacts ?? [] });
    expect(planted).toMatchObject({ outcome: "planted" });
    if (endWithoutScore.includes(attack.name)) expect(await gradeNaively(sandbox, task)).toBeNull();
    else if (goesOnWriting(attack))
      await expect.poll(async () => (await gradeNaively(sandbox, task)) ?? 0).toBeGreaterThan(0);
    else expect(await gradeNaively(sandbox, task)).toBeGreaterThan(0);
  });
});

function proofs() {
  return attackLibrary.flatMap((attack) => {
    const names: readonly NaiveTaskName[] = naiveTaskOf[attack.name] ?? ["file"];
    return names.map((taskName) => ({ attack, taskName }));
  });
}
