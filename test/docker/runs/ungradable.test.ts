import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { AttemptAgent } from "../../../src/batch/runs/agents/attempt-agent.js";
import { oracleAgent } from "../../../src/batch/runs/agents/command-agent.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, stepOf, type TaskParts, taskOf } from "../../support/task-attempts.js";

async function tried(directory: string, { agent, ...parts }: TaskParts & { agent: AttemptAgent }) {
  const task = await taskOf(directory, parts);
  return await runAttempt(await attemptAt(directory, { task, agent, isOneOfMany: true }));
}

const because = (message: string) => ({
  status: "unscored",
  reward: null,
  failure: { class: "ungradable", message: expect.stringContaining(message) },
});

describe("an attempt is unscored, with its cause", () => {
  sandboxTest.for(["separate", "shared"] as const)(
    "if the script of %s tests has the line ends of Windows",
    async (mode, { directory }) => {
      const testScript = "#!/bin/sh\r\necho 1 > /logs/verifier/reward.txt\r\n";
      const result = await tried(directory, { agent: shellAgent("true"), testScript, verifier: { mode } });
      expect(result).toMatchObject(because("test.sh cannot be run"));
    },
  );

  sandboxTest("if the agent is the solution, and a step has none", async ({ directory }) => {
    expect(await tried(directory, { agent: oracleAgent() })).toMatchObject(because("has no solution"));
    const commands = { kind: "commands", commands: ["echo 42 > answer.txt"] } as const;
    const steps = [
      await stepOf(directory, { step: { name: "one", solution: commands } }),
      await stepOf(directory, { step: { name: "two" } }),
    ];
    expect(await tried(directory, { agent: oracleAgent(), steps })).toMatchObject(because("has no solution"));
  });

  sandboxTest("if the solution has the line ends of Windows", async ({ directory }) => {
    const own = await mkdtemp(join(directory, "solution-"));
    await writeFile(join(own, "solve.sh"), "#!/bin/sh\r\ntrue\r\n");
    const solution = { kind: "script", directory: own, script: "solve.sh", env: {} } as const;
    const result = await tried(directory, { agent: oracleAgent(), step: { solution } });
    expect(result).toMatchObject(because("solve.sh cannot be run"));
  });
});

describe("/logs/verifier", () => {
  sandboxTest(
    "is there while the agent works on each step, and empty when the tests begin",
    async ({ directory }) => {
      const testScript = `#!/bin/sh
[ -z "$(ls -A /logs/verifier)" ] && [ "$(cat /app/answer.txt)" = there ] && echo 1 > /logs/verifier/reward.txt`;
      const steps = ["one", "two"].map(
        async (name) => await stepOf(directory, { testScript, step: { name }, verifier: { mode: "shared" } }),
      );
      const agent = shellAgent(
        "[ -d /logs/verifier ] && echo 1 > /logs/verifier/reward.json && echo there > answer.txt",
      );
      const result = await tried(directory, { agent, steps: await Promise.all(steps) });
      expect(result.steps.map(({ rewards }) => rewards?.reward)).toEqual([1, 1]);
    },
  );
});
