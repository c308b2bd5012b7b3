import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { parseScript } from "../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../src/public/agent.js";
import { type BatchEvent, type RunBatchOptions, runBatch } from "../../../src/public/batch.js";
import { sandboxTest } from "../../support/sandbox.js";

const script = "steps: [{ calls: [{ shell_command: { command: echo 42 > answer.txt } }] }, { text: done }]";

async function place(directory: string) {
  const tasks = join(directory, "tasks.jsonl");
  const row = (name: string, check: string) => JSON.stringify({ name, prompt: "Write 42.", check });
  await writeFile(tasks, `${row("right", "grep -qx 42 answer.txt")}\n${row("wrong", "false")}\n`);
  const events: BatchEvent[] = [];
  const options: RunBatchOptions = {
    paths: [tasks],
    folder: join(directory, "run"),
    agent: {
      kind: "model",
      model: "scripted",
      open: async () => createScriptedClient(parseScript(script, "script.yaml")),
      costOf: () => 0.5,
    },
    onEvent: (event) => events.push(event),
  };
  return { options, events };
}

describe("runBatch", () => {
  sandboxTest(
    "runs a model on tasks, reports what happens, and goes on with more of them",
    async ({ directory }) => {
      const { options, events } = await place(directory);
      const first = await runBatch({
        ...options,
        failsFast: true,
        concurrency: 1,
        select: { exclude: ["right"] },
      });
      expect(first).toMatchObject({ stop: { kind: "failed", task: "wrong" }, outcomes: [{ reward: 0 }] });
      expect(events.map(({ kind }) => kind)).toEqual([
        ...["started", "attempt-started"],
        ...["image", "start", "agent", "export", "verify"].map(() => "attempt-stage"),
        ...["attempt-ended", "draining", "ended"],
      ]);
      await expect(runBatch(options)).rejects.toMatchObject({
        code: "usage.invalid",
        message: expect.stringContaining("tasks.right: nothing → "),
      });
      const { summary, outcomes, stop, folder } = await runBatch({ ...options, allowsChanges: true });
      expect(folder).toBe(join(directory, "run"));
      expect(stop).toBeNull();
      expect(summary).toMatchObject({ attempts: { scored: 2, passed: 1 }, reward: { value: 0.5 } });
      expect(outcomes.map(({ task, usage }) => [task, usage.costUsd])).toEqual([
        ["wrong", 1],
        ["right", 1],
      ]);
    },
  );

  sandboxTest("refuses what cannot be run before anything runs", async ({ directory }) => {
    const { options, events } = await place(directory);
    const missing = runBatch({ ...options, paths: [join(directory, "nothing")] });
    await expect(missing).rejects.toMatchObject({ code: "task.invalid" });
    await expect(runBatch({ ...options, select: { include: ["x"] } })).rejects.toMatchObject({
      code: "usage.invalid",
    });
    const image = JSON.stringify({ prompt: "p", check: "true", image: "brig-test.invalid/none" });
    await writeFile(options.paths[0] ?? "", `${image}\n`);
    const offline = runBatch({ ...options, isOffline: true });
    await expect(offline).rejects.toMatchObject({
      code: "image.missing",
      message: expect.stringContaining("none"),
    });
    expect(events).toEqual([]);
  });

  sandboxTest(
    "gives all containers the limits of the run, which make it another run",
    async ({ directory }) => {
      const { options } = await place(directory);
      const select = { exclude: ["wrong"] };
      await expect(runBatch({ ...options, limits: { memoryMb: 5 } })).rejects.toMatchObject({
        code: "usage.invalid",
        message: expect.stringContaining("memoryMb"),
      });
      await expect(runBatch({ ...options, limits: { memoryMb: 900_000 } })).rejects.toMatchObject({
        code: "usage.invalid",
        message: expect.stringContaining("memory"),
      });
      const limits = { memoryMb: 256, cpus: 1, pids: 100 };
      const { outcomes } = await runBatch({ ...options, select, limits });
      expect(outcomes).toMatchObject([{ reward: 1 }]);
      await expect(runBatch({ ...options, select, limits: { ...limits, pids: 101 } })).rejects.toMatchObject({
        message: expect.stringContaining("limits.pids"),
      });
    },
  );
});
