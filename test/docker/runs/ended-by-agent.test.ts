import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";
import { agentOf, attemptAt, shellAgent, taskOf } from "../../support/task-attempts.js";

const GRADER = `#!/bin/sh
[ "$(cat /app/answer.txt)" = 42 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
`;

/** The first process of a container ignores its signals, but not the end of the processor time that it may use. */
const ENDS_CONTAINER = "prlimit --pid 1 --cpu=0:0; cat /dev/zero | head -c 200000000 | base64; sleep 1000";
const limits = { cpus: null, memoryMb: 64, storageMb: null };

describe("an agent that ends its own container", () => {
  sandboxTest("is graded on what it has done, and gets no other try for it", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: GRADER });
    const agent = shellAgent(`echo 42 > answer.txt; ${ENDS_CONTAINER}`);
    const result = await runAttempt(await attemptAt(directory, { task, agent }));
    expect(result).toMatchObject({ status: "scored", reward: 1, failure: null });
    expect(result.steps[0]).toMatchObject({
      agent: "failed",
      agentMessage: expect.stringMatching(/^the container ended with exit code \d+, and nobody outside/),
    });
  });

  sandboxTest("after the kernel has killed a process at its memory limit is, too", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: GRADER, environment: { limits } });
    const agent = shellAgent(`tail /dev/zero; ${ENDS_CONTAINER}`);
    const attempt = await attemptAt(directory, { task, agent, limits: { memoryHeadroom: 1 } });
    const result = await runAttempt(attempt);
    expect(result).toMatchObject({ status: "scored", reward: 0, failure: null });
    expect(result.steps[0]).toMatchObject({ agent: "out-of-memory" });
  });

  sandboxTest("or that of its tests has no reward, but a score", async ({ directory }) => {
    const task = await taskOf(directory, {
      step: { artifacts: [{ source: "run.sh", destination: null, exclude: [] }] },
      testScript: "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\nsh /app/run.sh\n",
    });
    const agent = shellAgent(`echo ${JSON.stringify(ENDS_CONTAINER)} > run.sh`);
    const result = await runAttempt(await attemptAt(directory, { task, agent }));
    expect(result).toMatchObject({ status: "scored", reward: 0, failure: null });
    expect(result.steps[0]?.verification).toMatchObject({ verifier: "no-reward" });
  });

  sandboxTest("is not one whose container somebody outside has killed", async ({ directory }) => {
    const engine = await testEngine();
    const agent = agentOf(async ({ sandbox, signal }) => {
      const running = sandbox.exec(["sleep", "1000"], { signal });
      await engine.killContainer(sandbox.containerId);
      await running;
    });
    const result = await runAttempt(await attemptAt(directory, { task: await taskOf(directory), agent }));
    expect(result).toMatchObject({
      status: "infrastructure",
      reward: null,
      failure: {
        class: "sandbox-gone",
        message: "the container was killed from outside",
        evidence: expect.arrayContaining([expect.stringMatching(/^events: .*kill, die/)]),
      },
    });
  });
});
