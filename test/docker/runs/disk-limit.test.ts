import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, taskOf } from "../../support/task-attempts.js";

/** The tests give 1 for a file that the agent makes before it writes so many MiB, and then goes on. */
async function tried(
  directory: string,
  { writesMb, allowedMb }: { writesMb: number; allowedMb: number | null },
) {
  const limits = { cpus: null, memoryMb: null, storageMb: allowedMb };
  const testScript = "#!/bin/sh\n[ -e /app/answer.txt ] && echo 1 > /logs/verifier/reward.txt\n";
  const task = await taskOf(directory, { environment: { limits }, testScript });
  const agent = shellAgent(
    `touch answer.txt; head -c ${writesMb}M /dev/zero > /var/tmp/big; sleep ${writesMb > (allowedMb ?? 0) ? 600 : 12}`,
  );
  return await runAttempt(await attemptAt(directory, { task, agent }));
}

describe("the disk space of an agent", () => {
  sandboxTest(
    "ends its part when it has written more than the task allows, and what it left is graded",
    async ({ directory }) => {
      const result = await tried(directory, { writesMb: 80, allowedMb: 40 });
      expect(result).toMatchObject({ status: "scored", reward: 1, failure: null });
      expect(result.steps[0]).toMatchObject({ agent: "out-of-disk" });
      expect(result.steps[0]?.agentMessage).toMatch(/written [4-8]\d MiB, and the task allows 40 MiB$/);
    },
  );

  sandboxTest("may be used up to the limit", async ({ directory }) => {
    const result = await tried(directory, { writesMb: 20, allowedMb: 40 });
    expect(result.steps[0]).toMatchObject({ agent: "completed" });
  });
});

describe("a sparse file", () => {
  const limits = { cpus: null, memoryMb: null, storageMb: 40 };
  const testScript = `#!/bin/sh
truncate -s 2G /var/tmp/tests-image
sleep 12
echo 1 > /logs/verifier/reward.txt
`;

  sandboxTest.for(["separate", "shared"] as const)(
    "counts with what it occupies, for the agent and for tests in a container of their own or not: %s",
    async (mode, { directory }) => {
      const task = await taskOf(directory, { environment: { limits }, testScript, verifier: { mode } });
      const agent = shellAgent("truncate -s 1G /var/tmp/image; ln /var/tmp/image /var/tmp/other; sleep 12");
      const result = await runAttempt(await attemptAt(directory, { task, agent }));
      expect(result).toMatchObject({ status: "scored", reward: 1, failure: null });
      expect(result.steps[0]).toMatchObject({ agent: "completed" });
      expect(result.steps[0]?.verification).toMatchObject({ mode, verifier: "scored" });
    },
  );

  sandboxTest("is no way around the limit", async ({ directory }) => {
    const task = await taskOf(directory, { environment: { limits } });
    const agent = shellAgent("truncate -s 1G sparse; head -c 80M /dev/zero >> sparse; sleep 600");
    const result = await runAttempt(await attemptAt(directory, { task, agent }));
    expect(result.steps[0]).toMatchObject({ agent: "out-of-disk" });
    expect(result.steps[0]?.agentMessage).toMatch(/written [4-8]\d MiB, and the task allows 40 MiB$/);
  });
});

describe("the disk space of tests", () => {
  sandboxTest.for(["separate", "shared"] as const)(
    "is limited as well, and tests of which too much is written give no reward: mode %s",
    async (mode, { directory }) => {
      const limits = { cpus: null, memoryMb: null, storageMb: 40 };
      // What the agent left, up to the limit, is not the tests'.
      const testScript =
        "#!/bin/sh\necho 1 > /logs/verifier/reward.txt; head -c 80M /dev/zero > /var/tmp/more; sleep 600\n";
      const task = await taskOf(directory, { environment: { limits }, testScript, verifier: { mode } });
      const agent = shellAgent("head -c 30M /dev/zero > /var/tmp/big");
      const result = await runAttempt(await attemptAt(directory, { task, agent }));
      expect(result).toMatchObject({ status: "scored", reward: 0, failure: null });
      expect(result.steps[0]?.verification).toMatchObject({ mode, verifier: "no-reward" });
      expect(result.steps[0]?.verification?.message).toMatch(
        // It may still be writing when it is measured.
        /^the tests' container had written [4-8]\d MiB, and the task allows 40 MiB$/,
      );
    },
  );
});
