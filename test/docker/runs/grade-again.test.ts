import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { Attempt } from "../../../src/batch/runs/attempt/attempt.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { gradeAgain } from "../../../src/batch/runs/grading/grade-again.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, taskOf } from "../../support/task-attempts.js";

const placeOf = ({ images, engine, environment, task }: Attempt) => ({
  task,
  images,
  place: { engine, environment },
});

const reads = (answer: string) =>
  `#!/bin/sh\n[ "$(cat /app/answer.txt)" = ${answer} ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt`;

describe("an attempt is graded again from its folder alone", () => {
  sandboxTest("by the tests as they are now", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: reads("43") });
    const attempt = await attemptAt(directory, { task, agent: shellAgent("echo 42 > answer.txt") });
    expect(await runAttempt(attempt)).toMatchObject({ status: "scored", reward: 0 });
    const changed = await taskOf(directory, { testScript: reads("42") });
    const again = await gradeAgain(attempt.folder, { ...placeOf(attempt), task: changed });
    expect(again).toMatchObject({ status: "scored", reward: 1, steps: [{ agent: "completed" }] });
  });

  sandboxTest("after the verifier could not be started", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: reads("42") });
    const attempt = await attemptAt(directory, { task, agent: shellAgent("echo 42 > answer.txt") });
    const [step] = task.steps;
    const healthcheck = {
      command: "false",
      intervalSec: 0,
      timeoutSec: 5,
      startPeriodSec: 0,
      startIntervalSec: 0,
      retries: 1,
    };
    const broken = { ...task.environment, healthcheck };
    const verifier = step && { ...step.verifier, environment: broken };
    const steps = step && verifier ? [{ ...step, verifier }] : [];
    const result = await runAttempt({ ...attempt, task: { ...task, steps } });
    expect(result).toMatchObject({
      status: "unscored",
      reward: null,
      failure: { class: "healthcheck-failed" },
    });
    expect(await gradeAgain(attempt.folder, placeOf(attempt))).toMatchObject({
      status: "scored",
      reward: 1,
      failure: null,
    });
  });

  sandboxTest("and takes no file from outside of it", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: reads("42") });
    const attempt = await attemptAt(directory, { task, agent: shellAgent("echo 42 > answer.txt") });
    await runAttempt(attempt);
    const manifest = join(attempt.folder, "artifacts.json");
    const text = await readFile(manifest, "utf8");
    await writeFile(manifest, text.replace('"file": "answer.txt"', '"file": "../result.json"'));
    await expect(gradeAgain(attempt.folder, placeOf(attempt))).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });

  sandboxTest("by the output of its tests, if a parser reads that", async ({ directory }) => {
    const testScript =
      "#!/bin/sh\necho 'short test summary info'; echo 'PASSED test_x.py::test_a'; echo 'FAILED test_x.py::test_b'\n";
    const task = await taskOf(directory, { testScript });
    const [step] = task.steps;
    const check = step?.verifier.check;
    if (step === undefined || check?.kind !== "reward-files" || check.directory === null)
      throw new TypeError("no step");
    const parsed = {
      ...check,
      directory: check.directory,
      script: join(check.directory, check.script),
      kind: "parsed-output" as const,
      parser: "parse_log_pytest" as const,
    };
    const steps = [{ ...step, verifier: { ...step.verifier, check: parsed } }];
    const attempt = await attemptAt(directory, { task: { ...task, steps }, agent: shellAgent("true") });
    const result = await runAttempt(attempt);
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(result.steps[0]?.verification?.tests).toEqual([
      { name: "test_x.py::test_a", status: "passed" },
      { name: "test_x.py::test_b", status: "failed" },
    ]);
  });
});
