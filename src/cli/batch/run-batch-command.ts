import { join, resolve } from "node:path";
import { loadConfig } from "../../agent/index.js";
import type {
  AttemptAgent,
  BatchOutcome,
  RunImages,
  SelectedTasks,
  Summary,
  Task,
  TasksRun,
} from "../../batch/index.js";
import {
  refuseUnsupportedTasks,
  retryPolicy,
  runTasks,
  settingsOf,
  wantedImages,
} from "../../batch/index.js";
import type { CliContext, Interruption } from "../../command/index.js";
import {
  type ChosenAgent,
  chosenAgent,
  configChoice,
  flaggedLimits,
  say,
  startTelemetry,
  write,
  writeJson,
  writeTable,
} from "../../command/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { BatchFlags } from "./batch-flags.js";
import { endAsJson, eventAsJson } from "./batch-json.js";
import type { BatchPlace } from "./batch-place.js";
import { reportToGithub } from "./github.js";
import { prebuild } from "./images/ready-images.js";
import { openPlace } from "./open-place.js";
import { showBatch, silent } from "./progress/show-batch.js";
import { readChosen } from "./read-chosen.js";
import { finalText, taskRows } from "./summary-text.js";

const FAILED = 1;

/** Runs the attempts of a batch that have no result yet, and prints the results. */
export async function runBatchCommand(
  paths: string[],
  flags: BatchFlags,
  context: CliContext,
): Promise<void> {
  const { config, warnings, notes } = await loadConfig(context.environment, configChoice(flags, context));
  for (const sentence of [...warnings, ...notes])
    await say(context.stderr, `brig: ${neutraliseLine(sentence)}\n`);
  await startTelemetry(config, context);
  const { agent, options: agentOptions } = await chosenAgent(flags, { config, context });
  const { tasks, origins } = await chosenTasks(paths, flags, context);
  if (flags.dryRun === true) return await printPlan(tasks, flags, context);
  refuseUnsupportedTasks(tasks);
  const folder = resolve(context.cwd, flags.output ?? defaultFolder(new Date()));
  const run: RunContext = { flags, context, tasks, folder, agent, agentOptions };
  const draining = new AbortController();
  const settings = settingsOf(runOptions(run));
  await using place = await openPlace({ ...run, config, origins, settings, drain: draining.signal });
  const { images } = place;
  if (flags.prebuildOnly === true && images !== null)
    return await buildOnly(tasks, { images, flags, context });
  const { outcome, summary, interruption } = await runShown(run, { place, draining });
  await printEnd(outcome, { summary, folder, flags, context });
  await reportToGithub(summary, { folder, tasks, isAskedFor: flags.github }, context);
  context.setExitStatus(interruption?.exitStatus ?? exitStatusOf(summary, flags));
  if (interruption === null) await images?.tidy(context.signal);
}

async function chosenTasks(
  paths: string[],
  flags: BatchFlags,
  context: CliContext,
): Promise<Pick<SelectedTasks, "tasks" | "origins">> {
  const { task: include, exclude, tag: tags, sample, seed, skipUnusable } = flags;
  const selection = { include, exclude, tags, sample, seed };
  const selected = await readChosen(paths, { selection, skipsUnusable: skipUnusable }, context);
  for (const { name, warnings } of selected.tasks)
    for (const warning of warnings)
      await say(context.stderr, `brig: ${neutraliseLine(`${name}: ${warning}`)}\n`);
  return selected;
}

async function printPlan(tasks: readonly Task[], flags: BatchFlags, { stdout }: CliContext): Promise<void> {
  const rows = tasks.map((task) => ({ task: task.name, attempts: flags.attempts, source: task.source }));
  if (flags.json === true) return await writeJson(stdout, rows);
  await writeTable(stdout, [
    ["TASK", "ATTEMPTS", "SOURCE"],
    ...rows.map(({ task, attempts, source }) => [task, String(attempts), source]),
  ]);
}

/** `brig-runs/2026-11-23T08-35-05Z`; a colon is not allowed in every file system. */
function defaultFolder(now: Date): string {
  return join(
    "brig-runs",
    now
      .toISOString()
      .replace(/\.\d+Z$/, "Z")
      .replaceAll(":", "-"),
  );
}

interface RunContext {
  flags: BatchFlags;
  context: CliContext;
  tasks: readonly Task[];
  folder: string;
  agent: AttemptAgent;
  agentOptions: ChosenAgent["options"];
}

/** The first ctrl-C or SIGTERM lets the running attempts end; the second one aborts the context's signal. */
async function runShown(
  run: RunContext,
  { place, draining }: { place: BatchPlace; draining: AbortController },
): Promise<{ outcome: BatchOutcome; summary: Summary; interruption: Interruption | null }> {
  const { flags, context, tasks } = run;
  const { images } = place;
  let interruption: Interruption | null = null;
  using display = flags.json === true ? silent : showBatch(context);
  using _first = context.drainFirst((first) => {
    interruption = first;
    draining.abort();
  });
  if (flags.prebuild === true && images !== null)
    await prebuild(wantedImages(tasks), images, {
      onReady: (line) => display.note(line),
      signal: context.signal,
    });
  const ended = await runTasks({
    ...runOptions(run),
    place: place.attempts,
    concurrency: place.concurrency,
    onEvent: (event) => {
      display.show(event);
      const line = flags.json === true ? eventAsJson(event) : null;
      if (line !== null) context.stdout.write(`${jsonText(line)}\n`);
    },
    drain: draining.signal,
  });
  await images?.removeLeft();
  return { ...ended, interruption };
}

type ShownOptions = "place" | "concurrency" | "onEvent" | "drain";

function runOptions(run: RunContext): Omit<TasksRun, ShownOptions> {
  const { flags, context, ...given } = run;
  return {
    ...given,
    attempts: flags.attempts,
    attemptLimits: {
      agentTimeoutSec: flags.timeout === undefined ? undefined : flags.timeout / 1000,
      timeoutMultiplier: flags.timeoutMultiplier,
      timeoutExtension: flags.timeoutExtension,
      keepServices: flags.keepServices,
      maxTurns: flags.maxTurns,
      maxTokens: flags.maxTokens,
      maxCostUsd: flags.maxCost,
      ...flaggedLimits(flags),
    },
    runtime: flags.runtime,
    environment: context.environment,
    retries: retryPolicy(flags.retries),
    limits: { maxCostUsd: flags.maxTotalCost, maxTokens: flags.maxTotalTokens, maxTimeMs: flags.maxTime },
    failsFast: flags.failFast === true,
    resume: {
      allowsChanges: flags.allowChanged === true,
      retriesInfrastructure: flags.retryInfrastructure === true,
      scoresUnscored: flags.scoreUnscored === true,
    },
    shuffleSeed: flags.shuffle === true ? flags.seed : undefined,
    signal: context.signal,
  };
}

/** Makes all images ready, and runs nothing. */
async function buildOnly(
  tasks: readonly Task[],
  { images, flags, context }: { images: RunImages; flags: BatchFlags; context: CliContext },
): Promise<void> {
  const { signal, stdout } = context;
  const wanted = wantedImages(tasks);
  {
    using display = flags.json === true ? silent : showBatch(context);
    await prebuild(wanted, images, { onReady: (line) => display.note(line), signal });
  }
  await images.tidy(signal);
  await images.removeLeft();
  if (flags.json === true) await writeJson(stdout, { images: wanted.length });
  else
    await say(stdout, `${wanted.length === 1 ? "the image is" : `all ${wanted.length} images are`} ready\n`);
}

async function printEnd(
  outcome: BatchOutcome,
  {
    summary,
    folder,
    flags,
    context,
  }: { summary: Summary; folder: string; flags: BatchFlags; context: CliContext },
): Promise<void> {
  const { stdout, stderr } = context;
  if (flags.json === true) {
    const end = endAsJson({ kind: "ended", stop: outcome.stop }, summary);
    return await write(stdout, `${jsonText(end)}\n`);
  }
  await writeTable(stdout, taskRows(summary));
  await say(stdout, finalText(summary, outcome));
  await say(stderr, `results in ${folder}\n`);
}

function exitStatusOf({ attempts, reward }: Summary, { minReward }: BatchFlags): number {
  const isScored = attempts.scored === attempts.planned;
  const isEnough = minReward === undefined || (reward !== null && reward.value >= minReward);
  return isScored && isEnough ? 0 : FAILED;
}
