import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { AttemptStage } from "../../../src/batch/runs/attempt/attempt.js";
import { containerRunner } from "../../../src/batch/runs/batch/container-runner.js";
import { runAttempts } from "../../../src/batch/runs/batch/run-batch.js";
import type { Task } from "../../../src/batch/tasks/task.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../../src/sandbox/labels.js";
import { batchOptions } from "../../support/batch-runs.js";
import { sandboxTest } from "../../support/sandbox.js";
import { agentOf, attemptAt, stepOf, taskOf } from "../../support/task-attempts.js";

const SLOW = `#!/bin/sh
echo begun; sleep 2; [ "$(cat /app/answer.txt)" = 42 ] && echo 1 > /logs/verifier/reward.txt`;

/** Runs a batch on real containers, and counts how often the agent works. */
async function batchOf(
  directory: string,
  tasks: Task[],
  onStage: (stage: AttemptStage, engine: Engine) => void = () => undefined,
) {
  let worked = 0;
  const agent = agentOf(async ({ sandbox, cwd }) => {
    worked++;
    await sandbox.exec(["/bin/sh", "-c", "echo 42 > answer.txt"], { cwd });
  });
  const [first] = tasks;
  if (first === undefined) throw new TypeError("no task");
  const { images, engine, environment } = await attemptAt(directory, { task: first, agent });
  const runner = containerRunner({ agent, images, engine, environment, limits: {}, runtime: undefined });
  const given = { tasks, runner, concurrency: 1 };
  const options = batchOptions(join(directory, "run"), given);
  const onEvent: typeof options.onEvent = (event) => {
    if (event.kind === "attempt-stage") onStage(event.stage, engine);
  };
  const outcome = await runAttempts({ ...options, onEvent });
  return { ...outcome, worked };
}

/** Waits until the tests say that they have begun. */
async function killTests(engine: Engine, output: string): Promise<void> {
  await expect.poll(() => readFile(output, "utf8").catch(() => ""), { timeout: 60_000 }).toContain("begun");
  const own = await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`]);
  for (const { id } of own) await engine.killContainer(id);
}

describe("a batch", () => {
  sandboxTest.for(["separate", "shared"] as const)(
    "tries again when somebody kills the container of the tests (%s)",
    async (mode, { directory }) => {
      const task = await taskOf(directory, { testScript: SLOW, verifier: { mode } });
      const output = join(directory, "run/attempts/made-for__test/1/test-output.txt");
      let killing: Promise<void> | undefined;
      const { outcomes, worked } = await batchOf(directory, [task], (stage, engine) => {
        if (stage === "verify") killing ??= killTests(engine, output);
      });
      await killing;
      expect(outcomes).toMatchObject([{ status: "scored", reward: 1, tries: [{}] }]);
      // What separate tests need is kept, so that no agent has to do it again.
      expect(worked).toBe(mode === "separate" ? 1 : 2);
    },
  );

  sandboxTest("goes on when one of its attempts cannot be run at all", async ({ directory }) => {
    const good = await taskOf(directory, { testScript: SLOW.replace("sleep 2; ", "") });
    const step = await stepOf(directory, {
      step: { agent: { timeoutSec: 60, user: "somebody", network: null } },
    });
    const bad = { ...(await taskOf(directory, { steps: [step] })), name: "bad" };
    const { outcomes } = await batchOf(directory, [bad, good]);
    expect(outcomes).toMatchObject([
      { task: "bad", status: "unscored", failure: { class: "ungradable" } },
      { status: "scored", reward: 1 },
    ]);
    expect(outcomes[0]?.failure?.message).toContain("somebody");
  });
});
