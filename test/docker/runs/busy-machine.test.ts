import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, taskOf } from "../../support/task-attempts.js";

/**
 * Four programs for each processor, which do nothing but keep it busy. Each has a session of its own, because the kernel
 * may share out the processors among sessions.
 */
async function besideNeighbours<T>(work: () => Promise<T>): Promise<T> {
  const neighbours = Array.from({ length: availableParallelism() * 4 }, () =>
    spawn("/bin/sh", ["-c", "while :; do :; done"], { stdio: "ignore", detached: true }),
  );
  try {
    return await work();
  } finally {
    const ended = neighbours.map(async (neighbour) => await once(neighbour, "exit"));
    for (const neighbour of neighbours) neighbour.kill("SIGKILL");
    await Promise.all(ended);
  }
}

const works = (seconds: number) => `python3 -c 'import time\nwhile time.process_time() < ${seconds}: pass'`;

const LIMIT_SEC = 4;

/** The work of the agent, or of the tests, takes this shell command. */
async function tried(
  directory: string,
  {
    command,
    by = "agent",
    timeoutExtension,
  }: { command: string; by?: "agent" | "tests"; timeoutExtension?: number },
) {
  const phase = { timeoutSec: LIMIT_SEC, user: null, network: null };
  const isAgents = by === "agent";
  const task = await taskOf(directory, {
    ...(isAgents ? { step: { agent: phase } } : { verifier: phase }),
    testScript: `#!/bin/sh\n${isAgents ? "[ -e /app/answer.txt ] || exit" : command}\necho 1 > /logs/verifier/reward.txt\n`,
  });
  const agent = shellAgent(isAgents ? `${command}\ntouch answer.txt` : "touch answer.txt");
  const attempt = await attemptAt(directory, { task, agent, limits: { timeoutExtension } });
  return await besideNeighbours(async () => await runAttempt(attempt));
}

describe("a time limit on a machine where others hold the processors", () => {
  sandboxTest(
    "ends what could have been done on an idle one, unless it may be extended",
    async ({ directory }) => {
      const result = await tried(directory, { command: works(2) });
      expect(result.steps[0]).toMatchObject({ agent: "timed-out" });
      expect(result.durations).toMatchObject({ agentMs: LIMIT_SEC * 1000, agentExtendedMs: 0 });
      expect(result.resources.waitedForCpuMs).toBeGreaterThan(LIMIT_SEC * 250);
    },
  );

  sandboxTest("is extended for an agent by what it lost", async ({ directory }) => {
    const result = await tried(directory, { command: works(2), timeoutExtension: 50 });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(result.steps[0]).toMatchObject({ agent: "completed" });
    const { agentMs, agentExtendedMs } = result.durations;
    expect(agentExtendedMs).toBeGreaterThan(0);
    expect((agentMs ?? 0) - (agentExtendedMs ?? 0)).toBeCloseTo(LIMIT_SEC * 1000);
  });

  sandboxTest("is extended for tests by what they lost", async ({ directory }) => {
    const command = works(2);
    const without = await tried(directory, { command, by: "tests" });
    expect(without).toMatchObject({ status: "scored", reward: 0 });
    expect(without.steps[0]?.verification).toMatchObject({ verifier: "timed-out" });
    const extended = await tried(directory, { command, by: "tests", timeoutExtension: 50 });
    expect(extended).toMatchObject({ status: "scored", reward: 1 });
    expect(extended.durations.verifierExtendedMs).toBeGreaterThan(0);
  });

  sandboxTest("is not extended for what only sleeps", async ({ directory }) => {
    const result = await tried(directory, { command: "sleep 60", timeoutExtension: 50 });
    expect(result.steps[0]).toMatchObject({ agent: "timed-out" });
    expect(result.durations.agentExtendedMs).toBeLessThan(LIMIT_SEC * 250);
  });

  sandboxTest("is extended by no more than it may be, however many threads wait", async ({ directory }) => {
    const threads = "for i in $(seq 300); do (while :; do :; done) & done; wait";
    const result = await tried(directory, { command: threads, timeoutExtension: 0.5 });
    expect(result.steps[0]).toMatchObject({ agent: "timed-out" });
    expect(result.durations.agentExtendedMs).toBeLessThanOrEqual(LIMIT_SEC * 500);
    expect(result.durations.agentMs).toBeLessThanOrEqual(LIMIT_SEC * 1500);
  });
});
