import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { nopAgent, oracleAgent } from "../../../src/batch/runs/agents/command-agent.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { attemptResultSchema } from "../../../src/batch/runs/results/attempt-result.js";
import { openedSandboxOf } from "../../../src/sandbox/sandbox.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";
import { agentOf, attemptAt, shellAgent, stepOf, taskOf } from "../../support/task-attempts.js";

/** Gives 1 for the right answer, and says in the output what it saw. */
const GRADER = `#!/bin/sh
echo "the answer is $(cat /app/answer.txt 2>/dev/null)"
if [ "$(cat /app/answer.txt 2>/dev/null)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;

async function solutionIn(directory: string, script: string) {
  const path = join(directory, "solution");
  await mkdir(path);
  await writeFile(join(path, "solve.sh"), script);
  return { kind: "script", directory: path, script: "solve.sh", env: { ANSWER: "42" } } as const;
}

describe("an attempt", () => {
  sandboxTest(
    "by the oracle is graded 1, and leaves its files and nothing on the engine",
    async ({ directory }) => {
      const solution = await solutionIn(directory, "echo solving\necho $ANSWER > answer.txt\n");
      const task = await taskOf(directory, { testScript: GRADER, step: { solution } });
      const attempt = await attemptAt(directory, { task, agent: oracleAgent() });
      const result = await runAttempt(attempt);
      expect(result).toMatchObject({ status: "scored", reward: 1, rewards: { reward: 1 }, failure: null });
      expect(result.steps[0]).toMatchObject({
        agent: "completed",
        verification: { mode: "separate", verifier: "scored", findings: [] },
      });
      const written = JSON.parse(await readFile(join(attempt.folder, "result.json"), "utf8"));
      expect(attemptResultSchema.parse(written)).toEqual(result);
      expect(await readFile(join(attempt.folder, "test-output.txt"), "utf8")).toBe("the answer is 42\n");
      expect(await readFile(join(attempt.folder, "agent-output.txt"), "utf8")).toBe("solving\n");
      expect(await readFile(join(attempt.folder, "artifacts/answer.txt"), "utf8")).toBe("42\n");
      expect(await readdir(join(directory, "home/sandboxes"))).toEqual([]);
    },
  );

  sandboxTest("by nobody is graded 0", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: GRADER });
    const result = await runAttempt(await attemptAt(directory, { task, agent: nopAgent() }));
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(result.steps[0]?.verification?.findings).toEqual(['"/app/answer.txt" does not exist']);
  });

  sandboxTest("has what the task asks for: files, variables, memory, directory", async ({ directory }) => {
    const files = join(directory, "files");
    await mkdir(join(files, "sub"), { recursive: true });
    await writeFile(join(files, "sub/given.txt"), "given");
    const task = await taskOf(directory, {
      environment: { files, env: { FROM_TASK: "yes" }, limits: { cpus: 1, memoryMb: 200, storageMb: null } },
      testScript: "#!/bin/sh\ncat /app/answer.txt; echo 0.5 > /logs/verifier/reward.txt",
    });
    const agent = shellAgent('echo "$PWD $FROM_TASK $(cat sub/given.txt) $(id -u)" > answer.txt');
    const attempt = await attemptAt(directory, { task, agent, limits: { memoryHeadroom: 2 } });
    const { reward, resources } = await runAttempt(attempt);
    expect(reward).toBe(0.5);
    expect(await readFile(join(attempt.folder, "test-output.txt"), "utf8")).toBe("/app yes given 0\n");
    expect(resources).toMatchObject({
      memoryRequestedBytes: 200 * 1024 * 1024,
      memoryLimitBytes: 400 * 1024 * 1024,
    });
    expect(resources.peakMemoryBytes).toBeGreaterThan(0);
    expect(resources.cpuMs).toBeGreaterThan(0);
  });

  sandboxTest("has the limits of its run in place of the task's", async ({ directory }) => {
    const environment = { limits: { cpus: 1, memoryMb: 200, storageMb: null } };
    const task = await taskOf(directory, { environment, testScript: GRADER });
    let given: object = {};
    const agent = agentOf(async ({ sandbox }) => {
      given = openedSandboxOf(sandbox).plan.limits;
      await sandbox.exec(["sh", "-c", "echo 42 > answer.txt"]);
    });
    const limits = { memoryMb: 300, cpus: 0.5, pids: 77, memoryHeadroom: 5 };
    const { reward, resources } = await runAttempt(await attemptAt(directory, { task, agent, limits }));
    expect(reward).toBe(1);
    expect(given).toMatchObject({ memoryBytes: 300 * 1024 * 1024, nanoCpus: 500_000_000, pids: 77 });
    expect(resources.memoryLimitBytes).toBe(300 * 1024 * 1024);
  });

  sandboxTest("whose agent's time is over is graded all the same", async ({ directory }) => {
    const task = await taskOf(directory, { testScript: GRADER });
    const agent = shellAgent("echo 42 > answer.txt; sleep 1000");
    const limits = { agentTimeoutSec: 3 };
    const result = await runAttempt(await attemptAt(directory, { task, agent, limits }));
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(result.steps[0]?.agent).toBe("timed-out");
  });

  sandboxTest("that is aborted is cancelled, and leaves nothing on the engine", async ({ directory }) => {
    const task = await taskOf(directory);
    const abort = new AbortController();
    const engine = await testEngine();
    let container = "";
    const agent = agentOf(async ({ sandbox, signal }) => {
      container = sandbox.containerId;
      abort.abort(new Error("enough"));
      await sandbox.exec(["sleep", "1000"], { signal });
    });
    const attempt = await attemptAt(directory, { task, agent, signal: abort.signal });
    expect(await runAttempt(attempt)).toMatchObject({ status: "cancelled", reward: null });
    expect(await engine.inspectContainer(container)).toBeNull();
  });

  sandboxTest(
    "of several steps goes on in one container until a reward is too low",
    async ({ directory }) => {
      const grader = (name: string) =>
        `#!/bin/sh\n[ "$(cat /app/${name})" = ok ] && r=1 || r=0; echo "{\\"reward\\": $r, \\"extra\\": true}" > /logs/verifier/reward.json`;
      const step = async (name: string) =>
        await stepOf(directory, {
          testScript: grader(name),
          step: {
            name,
            minRewards: { reward: 1 },
            artifacts: [{ source: name, destination: null, exclude: [] }],
          },
        });
      const steps = [await step("one"), await step("two"), await step("three"), await step("four")];
      const task = await taskOf(directory, { steps });
      const agent = agentOf(async ({ sandbox, cwd, step: { name } }) => {
        const script = `ls; pgrep -c sleep; setsid sleep 1000 & [ ${name} = three ] || echo ok > ${name}`;
        await sandbox.exec(["bash", "-c", script], { cwd });
      });
      const attempt = await attemptAt(directory, { task, agent });
      const result = await runAttempt(attempt);
      expect(result.steps.map(({ name, rewards }) => [name, rewards?.reward])).toEqual([
        ["one", 1],
        ["two", 1],
        ["three", 0],
      ]);
      expect(result).toMatchObject({ status: "scored", reward: 0.5 });
    },
  );

  sandboxTest("with a health check that fails is not the agent's fault", async ({ directory }) => {
    const healthcheck = {
      ...{ command: "exit 1", intervalSec: 0, timeoutSec: 5 },
      ...{ startPeriodSec: 0, startIntervalSec: 0, retries: 2 },
    };
    const task = await taskOf(directory, { environment: { healthcheck } });
    const result = await runAttempt(await attemptAt(directory, { task, agent: nopAgent() }));
    expect(result).toMatchObject({ status: "infrastructure", failure: { class: "healthcheck-failed" } });
  });

  sandboxTest("reaches the hosts that the task allows, and no others", async ({ directory }) => {
    const network = {
      mode: "allowlist",
      allowedHosts: ["a.example", "*.b.example", "10.0.0.0/8", "fd00::1"],
    } as const;
    const task = await taskOf(directory, {
      environment: { network },
      testScript: "#!/bin/sh\ncat /app/answer.txt; echo 1 > /logs/verifier/reward.txt",
    });
    const names = "for name in a.example x.b.example c.example; do getent ahosts $name | head -n 1; done";
    const denied = "curl -s http://c.example/; ls /sys/class/net";
    const agent = shellAgent(`(${names}; ${denied}) > answer.txt`);
    const attempt = await attemptAt(directory, { task, agent });
    expect(await runAttempt(attempt)).toMatchObject({ status: "scored" });
    const output = await readFile(join(attempt.folder, "test-output.txt"), "utf8");
    const egress = (await readFile(join(attempt.folder, "egress.jsonl"), "utf8")).trimEnd().split("\n");
    expect(egress.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({
        ...{
          stage: "agent",
          program: "curl",
          host: "c.example",
          port: 80,
          outcome: "denied",
          reason: "no-rule",
        },
        ...{ count: 1, callId: null },
      }),
    );
    expect(output.match(/^127\.84\S+|no rule .* allows \S+|^\w+$/gm)).toEqual([
      "127.84.0.1",
      "127.84.0.2",
      "no rule of this sandbox's network allow-list allows c.example.",
      "lo",
    ]);
  });

  sandboxTest("asks for nothing that cannot be had", async ({ directory }) => {
    const network = { mode: "public", allowedHosts: [] } as const;
    const task = await taskOf(directory, { verifier: { mode: "shared", network } });
    const attempt = await attemptAt(directory, { task, agent: nopAgent() });
    await expect(runAttempt(attempt)).rejects.toMatchObject({ code: "usage.invalid" });
    expect(await readdir(attempt.folder)).toEqual([]);
  });
});
