import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AttemptOrder, runAttempts } from "../../../../../src/batch/runs/batch/run-batch.js";
import { readRun } from "../../../../../src/batch/runs/batch/run-store.js";
import { type RegradeOptions, regradeRun } from "../../../../../src/batch/runs/regrade.js";
import type { AttemptFailure } from "../../../../../src/batch/runs/results/attempt-result.js";
import { batchOptions, temporaryFolder } from "../../../../support/batch-runs.js";
import { infrastructure, playedResult, playedRunner } from "../../../../support/played-attempts.js";
import { gradableTask, leavesArtifacts } from "../../../../support/played-runs.js";

const changed = {
  checksum: "of today",
  parts: { instruction: "i", environment: "e", tests: "new", solution: "s", settings: "g" },
};

/** A run of two tasks whose attempts got nothing, and what grades the first of them by today's tests. */
async function gradedRun(given: Partial<RegradeOptions> = {}) {
  const folder = await temporaryFolder();
  const tasks = [gradableTask("first"), gradableTask("second")];
  const runner = playedRunner({ play: leavesArtifacts });
  await runAttempts(batchOptions(folder, { tasks, runner }));
  const regrade = async (more: Partial<RegradeOptions> = {}) =>
    await regradeRun({
      folder,
      tasks: [gradableTask("first", changed), gradableTask("unknown")],
      grade: async (order: AttemptOrder) => (await runner.grade?.(order)) ?? expect.fail(),
      concurrency: 1,
      allowsChanges: false,
      onEvent: () => undefined,
      drain: new AbortController().signal,
      signal: new AbortController().signal,
      ...given,
      ...more,
    });
  const rewards = async (run = folder) =>
    Object.fromEntries((await readRun(run)).outcomes.map(({ task, reward }) => [task, reward]));
  return { folder, regrade, rewards };
}

describe("a run is graded again", () => {
  it("by today's tests, where they are given, and keeps the former grades", async () => {
    const { regrade, rewards, folder } = await gradedRun();
    const { former, graded, before } = await regrade();
    expect(await rewards()).toEqual({ first: 0.5, second: 0 });
    expect(await rewards(former)).toEqual({ first: 0, second: 0 });
    expect(before.outcomes).toHaveLength(2);
    expect(graded.map(({ task, taskChecksum }) => [task, taskChecksum])).toEqual([["first", "of today"]]);
    const { batch } = await readRun(folder);
    expect(batch.tasks.map(({ name, checksum }) => [name, checksum])).toEqual([
      ["first", "of today"],
      ["second", "checksum of second"],
    ]);
  });

  it("and has no grades of the former tests while it is", async () => {
    const { folder, regrade, rewards } = await gradedRun();
    const broken = regrade({
      grade: async () => {
        throw new Error("pulled the plug");
      },
    });
    await expect(broken).rejects.toThrow("pulled the plug");
    expect(await rewards()).toEqual({ second: 0 });
    const torn = JSON.parse(await readFile(join(folder, "attempts/first/1/result.json"), "utf8"));
    expect(torn).toMatchObject({
      status: "unscored",
      reward: null,
      steps: [{ agent: "completed", rewards: null }],
    });
    await regrade();
    expect(await rewards()).toMatchObject({ second: 0 });
  });

  it("and tried again when the infrastructure loses a grade", async () => {
    const { regrade, rewards } = await gradedRun();
    let lost = 0;
    const { graded } = await regrade({
      grade: async ({ task, attempt, tries }) => {
        const place = { task: task.name, attempt, tries: [...tries] };
        if (lost++ > 0) return playedResult({ ...place, reward: 0.5 });
        return playedResult({ ...place, ...infrastructure, status: "unscored" });
      },
    });
    expect(graded).toMatchObject([{ status: "scored", tries: [{ failure: infrastructure.failure }] }]);
    expect(await rewards()).toEqual({ first: 0.5, second: 0 });
  });

  it("but for attempts whose tests need the agent's container, which keep their grades", async () => {
    const { steps } = gradableTask("x");
    const shared = steps.map((step) => ({
      ...step,
      verifier: { ...step.verifier, mode: "shared" as const },
    }));
    const other = gradableTask("second", { steps: shared, checksum: "other" });
    const { regrade, rewards, folder } = await gradedRun();
    const { graded, left } = await regrade({ tasks: [gradableTask("first", changed), other] });
    expect([graded.map(({ task }) => task), left]).toEqual([["first"], ["second"]]);
    expect(await rewards()).toEqual({ first: 0.5, second: 0 });
    // Its grade is by the tests of then.
    const { batch } = await readRun(folder);
    expect(batch.tasks.map(({ checksum }) => checksum)).toEqual(["of today", "checksum of second"]);
    await expect(regrade({ tasks: [other] })).rejects.toThrow("run in the agent's container");
  });

  it("but for attempts whose agent never worked", async () => {
    const tasks = [gradableTask("first"), gradableTask("second")];
    const folder = await temporaryFolder();
    const failure: AttemptFailure = { class: "ungradable", message: "no such user", evidence: [] };
    const runner = playedRunner({
      play: (order) =>
        order.task.name === "first"
          ? { status: "unscored", reward: null, rewards: {}, failure }
          : leavesArtifacts(order),
    });
    await runAttempts(batchOptions(folder, { tasks, runner }));
    const { regrade } = await gradedRun({ folder, tasks });
    expect((await regrade()).graded.map(({ task }) => task)).toEqual(["second"]);
  });

  it("unless its agents were given something else", async () => {
    const other = gradableTask("first", { checksum: "x", parts: { ...changed.parts, instruction: "other" } });
    const { regrade, rewards } = await gradedRun({ tasks: [other] });
    await expect(regrade()).rejects.toThrow("tasks.first.instruction: i → other");
    expect(await rewards()).toEqual({ first: 0, second: 0 });
    await regrade({ allowsChanges: true });
    expect(await rewards()).toEqual({ first: 0.5, second: 0 });
  });

  it("unless artifacts are missing, and then nothing is changed", async () => {
    const { folder, regrade, rewards } = await gradedRun();
    await rm(join(folder, "attempts/first/1/artifacts.json"));
    await expect(regrade()).rejects.toThrow("first #1: its artifacts were not kept");
    expect(await rewards()).toEqual({ first: 0, second: 0 });
  });

  it.each([
    ["a folder that is no run", { folder: "/proc/nonexistent" }],
    ["tasks that are not the run's", { tasks: [gradableTask("unknown")] }],
  ])("but not for %s", async (_, given) => {
    const { regrade } = await gradedRun(given);
    await expect(regrade()).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
