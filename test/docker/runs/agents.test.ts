import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { parseScript } from "../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../src/agent/model/script/scripted-client.js";
import { commandAgent, oracleAgent } from "../../../src/batch/runs/agents/command-agent.js";
import { modelAgent } from "../../../src/batch/runs/agents/model-agent.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import type { TaskSolution } from "../../../src/batch/tasks/task.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, taskOf } from "../../support/task-attempts.js";

const testScript =
  "#!/bin/sh\ncat /app/answer.txt; [ -s /app/answer.txt ]; echo $((1 - $?)) > /logs/verifier/reward.txt\n";

function scripted(yaml: string) {
  return modelAgent({
    name: "scripted",
    model: "scripted",
    openModel: async () => createScriptedClient(parseScript(yaml, "script.yaml")),
  });
}

const SCRIPT = `
steps:
  - calls:
      - shell_command: { command: "pwd > answer.txt" }
  - calls:
      - shell_command: { command: "cat answer.txt" }
  - expect: { contains: /app }
    text: done
`;

describe("brig's own loop", () => {
  sandboxTest("works on a task, and leaves its session and a trajectory", async ({ directory }) => {
    const task = await taskOf(directory, { testScript });
    const attempt = await attemptAt(directory, { task, agent: scripted(SCRIPT) });
    const { reward, steps, files, usage } = await runAttempt(attempt);
    expect(steps[0]).toMatchObject({ agent: "completed", agentMessage: "done" });
    expect({ reward, turns: usage.turns, toolCalls: usage.toolCalls }).toEqual({
      reward: 1,
      turns: 3,
      toolCalls: 2,
    });
    const trajectory = JSON.parse(await readFile(join(attempt.folder, files.trajectory ?? ""), "utf8"));
    expect(trajectory).toMatchObject({ schema_version: "ATIF-v1.7" });
    expect(await readFile(join(attempt.folder, files.session ?? ""), "utf8")).toContain(
      "make /app/answer.txt",
    );
  });

  sandboxTest("is told its limits, stops at them, and is graded all the same", async ({ directory }) => {
    const task = await taskOf(directory, { testScript });
    const limits = { maxTurns: 1, maxTokens: 1000, agentTimeoutSec: 100 };
    const attempt = await attemptAt(directory, { task, agent: scripted(SCRIPT), limits });
    const { reward, steps, files, usage } = await runAttempt(attempt);
    expect(steps[0]).toMatchObject({ agent: "limit", agentMessage: "the limit of 1 turns is reached" });
    expect([reward, usage.turns]).toEqual([1, 1]);
    const session = await readFile(join(attempt.folder, files.session ?? ""), "utf8");
    for (const told of ["Your time for this task ends at 20", "at most 1 turns", "at most 1000 tokens"])
      expect(session).toContain(told);
  });
});

describe("any program as an agent", () => {
  sandboxTest("reads the instruction, has no input, and leaves a bounded output", async ({ directory }) => {
    const task = await taskOf(directory, { testScript });
    const command = 'cat "$BRIG_INSTRUCTION_FILE" - > answer.txt; yes | head -c 40000000; exit 3';
    const attempt = await attemptAt(directory, { task, agent: commandAgent(command) });
    const { reward, steps, files } = await runAttempt(attempt);
    expect(reward).toBe(1);
    expect(steps[0]?.agent).toBe("failed");
    expect(steps[0]?.agentMessage).toContain("exit code 3");
    expect(await readFile(join(attempt.folder, "test-output.txt"), "utf8")).toBe("make /app/answer.txt");
    expect((await readFile(join(attempt.folder, files.agentOutput ?? ""))).length).toBeLessThan(
      17 * 1024 * 1024,
    );
  });
});

describe("the oracle", () => {
  sandboxTest.for([
    { kind: "commands", commands: ["cd /", "echo one > answer.txt"] },
    {
      kind: "patch",
      patch:
        "diff --git a/answer.txt b/answer.txt\nnew file mode 100644\n--- /dev/null\n+++ b/answer.txt\n@@ -0,0 +1 @@\n+one\n",
    },
  ] satisfies TaskSolution[])("solves by $kind", async (solution, { directory }) => {
    const task = await taskOf(directory, { testScript, step: { solution } });
    const attempt = await attemptAt(directory, { task, agent: oracleAgent() });
    expect(await runAttempt(attempt)).toMatchObject({ status: "scored", reward: 1 });
  });
});
