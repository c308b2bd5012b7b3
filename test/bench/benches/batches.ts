import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { retryPolicy } from "../../../src/batch/runs/batch/batch-settings.js";
import { runAttempts } from "../../../src/batch/runs/batch/run-batch.js";
import { attemptFolder, RESULT_FILE, runFiles } from "../../../src/batch/runs/results/run-files.js";
import { playedResult, playedRunner, playedSettings, playedTasks } from "../../support/played-attempts.js";
import type { BatchMeasures, BatchOrder } from "../batch-process.js";
import { type Bench, type BenchContext, compare, quantity, type Row } from "../bench.js";
import { ownFolder } from "../own-folder.js";
import { measureInOwnProcess } from "../own-process.js";
import { execInSandbox } from "../rivals.js";
import { timed } from "../sampling.js";

/** How much of the engine's speed a batch reaches, how much memory it takes, and how soon an ended one is known to have ended. */
export const batches: Bench = {
  name: "batches",
  run: async (context) => [await noOpTasks(context), await memory(context), await resume(context)],
};

const AT_ONCE = 16;

/**
 * The ideal is the time in which the engine starts and removes as many containers as the batch did, as many at a time, when nothing
 * else is to be done: half of them before the batch and half after it, so that a machine that becomes slower slows both sides.
 */
async function noOpTasks(context: BenchContext): Promise<Row> {
  const { isQuick, progress } = context;
  const tasks = isQuick ? 32 : 500;
  await using folder = await ownFolder();
  // An attempt has a container for the agent and one for the tests. What the batch has really started is counted.
  const expected = 2 * tasks;
  progress(`${expected / 2} containers without a batch`);
  const beforeMs = await bareContainers(expected / 2, context);
  progress(`${tasks} tasks of a batch`);
  const batch = await runBatchOf(tasks, { folder: folder.path, concurrency: AT_ONCE, context });
  const started = batch.containersStarted;
  progress(`${expected / 2} more containers without a batch`);
  const afterMs = await bareContainers(expected / 2, context);
  const idealMs = ((beforeMs + afterMs) * started) / expected;
  return compare(
    { name: "runBatch", rounds: [[batch.ms]] },
    { name: `Sandbox.create, exec and close of ${started} containers alone`, rounds: [[idealMs]] },
    {
      title: `${tasks} tasks that nobody works on, ${AT_ONCE} at a time, in ${started} containers`,
      unit: "ms",
      direction: "rival / ours",
      target: { kind: "at-least", value: 0.9 },
    },
  );
}

/** Milliseconds for so many sandboxes, as many at a time as attempts of the batch, each with one command. */
async function bareContainers(count: number, context: BenchContext): Promise<number> {
  await using first = await context.openSandbox({ mode: "danger-full-access", workspaceKind: "none" });
  const { engine } = first;
  let left = count;
  const work = async () => {
    while (left-- > 0) {
      context.signal.throwIfAborted();
      await using sandbox = await context.openSandbox({
        ...{ mode: "danger-full-access", workspaceKind: "none", workspace: undefined, engine },
        network: "none",
      });
      await execInSandbox(sandbox, ["true"]);
    }
  };
  return await timed(() => Promise.all(Array.from({ length: AT_ONCE }, work)));
}

async function memory(context: BenchContext): Promise<Row> {
  const { isQuick, progress } = context;
  const attempts = isQuick ? 16 : 64;
  await using folder = await ownFolder();
  progress(`${attempts} attempts at once`);
  const agent = { kind: "command", command: `sleep ${isQuick ? 10 : 40}` } as const;
  const measures = await runBatchOf(attempts, { folder: folder.path, concurrency: attempts, agent, context });
  return quantity(
    { name: "the process of runBatch", values: [measures.memoryMb] },
    {
      title: `memory with ${measures.mostAtOnce} attempts at once`,
      unit: "MB",
      judged: "max",
      target: { kind: "at-most", value: 300 },
    },
  );
}

interface OwnBatch {
  folder: string;
  concurrency: number;
  agent?: BatchOrder["agent"];
  context: BenchContext;
}

/** A batch of so many tasks on brig/base in a process of its own. */
async function runBatchOf(
  tasks: number,
  { folder, concurrency, agent = { kind: "nop" }, context: { runtime, signal } }: OwnBatch,
): Promise<BatchMeasures> {
  const paths = [join(folder, "tasks.jsonl")];
  const row = `${JSON.stringify({ prompt: "Do nothing.", check: "true" })}\n`;
  await writeFile(paths[0] ?? "", row.repeat(tasks));
  const order: BatchOrder = { paths, folder: join(folder, "run"), concurrency, agent, runtime };
  const measures = (await measureInOwnProcess("./batch-process.js", order, signal)) as BatchMeasures;
  if (measures.scored !== tasks) throw new Error(`only ${measures.scored} of ${tasks} attempts have a score`);
  return measures;
}

const RESUMED = 5000;

async function resume({ isQuick, progress }: BenchContext): Promise<Row> {
  await using folder = await ownFolder();
  progress(`a run of ${RESUMED} attempts that have ended`);
  const tasks = playedTasks(RESUMED);
  // Writes what says which run it is, and starts nothing.
  await runUntilKnown(folder.path, tasks, AbortSignal.abort());
  const results = tasks.map(({ name, checksum }) => playedResult({ task: name, taskChecksum: checksum }));
  const lines = results.map((result) => `${JSON.stringify(result)}\n`);
  await writeFile(join(folder.path, runFiles.results), lines.join(""));
  for (const result of results) {
    const file = join(folder.path, attemptFolder(result), RESULT_FILE);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify(result));
  }
  const decisions: number[] = [];
  for (let round = 0; round < (isQuick ? 2 : 10); round++)
    decisions.push(await runUntilKnown(folder.path, tasks, new AbortController().signal));
  return quantity(
    { name: "runAttempts", values: decisions },
    {
      title: `to know that ${RESUMED} attempts have ended`,
      unit: "ms",
      target: { kind: "at-most", value: 1000 },
    },
  );
}

/** Milliseconds until a run knows what is left of it. */
async function runUntilKnown(
  folder: string,
  tasks: ReturnType<typeof playedTasks>,
  drain: AbortSignal,
): Promise<number> {
  const startedAt = performance.now();
  let knownMs = 0;
  await runAttempts({
    ...{ folder, tasks, drain, settings: playedSettings, runner: playedRunner(), concurrency: AT_ONCE },
    ...{ limits: {}, failsFast: false, retries: retryPolicy(), retryWaitMs: () => 0, now: () => new Date() },
    resume: { allowsChanges: false, retriesInfrastructure: false, scoresUnscored: false },
    onEvent: (event) => {
      if (event.kind === "started") knownMs = performance.now() - startedAt;
    },
    signal: new AbortController().signal,
  });
  return knownMs;
}
