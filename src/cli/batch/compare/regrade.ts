import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { loadConfig } from "../../../agent/index.js";
import type { Regraded, Task } from "../../../batch/index.js";
import {
  attemptLimits,
  compareRuns,
  containerGrader,
  refuseUnsupportedTasks,
  regradeRun,
  requireRun,
  writeReports,
} from "../../../batch/index.js";
import type { CliContext, Interruption } from "../../../command/index.js";
import { configChoice, openBatchImages, say, write, writeTable } from "../../../command/index.js";
import { jsonText } from "../../../lib/json/json-text.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { connectEngine } from "../../../sandbox/index.js";
import { endAsJson, eventAsJson } from "../batch-json.js";
import { requireImages } from "../images/ready-images.js";
import { showBatch, silent } from "../progress/show-batch.js";
import { readChosen } from "../read-chosen.js";
import { comparisonText, taskRows } from "./comparison-text.js";

export interface RegradeFlags {
  task?: string[];
  exclude?: string[];
  concurrency?: number;
  offline?: boolean;
  allowChanged?: boolean;
  json?: boolean;
}

const NOT_ALL_SCORED = 1;

/** Grades the attempts of a run again, and prints which grades have changed. */
export async function regrade(
  { run, paths }: { run: string; paths: readonly string[] },
  flags: RegradeFlags,
  context: CliContext,
): Promise<void> {
  const { cwd, environment } = context;
  const folder = resolve(cwd, run);
  const { settings } = await requireRun(folder);
  const selection = { include: flags.task, exclude: flags.exclude };
  const { tasks } = await readChosen(paths, { selection }, context);
  refuseUnsupportedTasks(tasks);
  const engine = await connectEngine({ env: environment });
  const { config } = await loadConfig(environment, configChoice({}, context));
  const images = openBatchImages(flags, { engine, config, context });
  await requireImages(tasks, { images, engine });
  const limits = attemptLimits(settings);
  const runtime = settings.runtime ?? undefined;
  const grade = containerGrader({ engine, images, environment, limits, runtime });
  const { regraded, interruption } = await regradeShown({ folder, tasks, grade }, flags, context);
  await printEnd(folder, regraded, { flags, context });
  const hasAll = regraded.graded.every(({ status }) => status === "scored") && regraded.stop === null;
  context.setExitStatus(interruption?.exitStatus ?? (hasAll ? 0 : NOT_ALL_SCORED));
}

interface ChosenRun {
  folder: string;
  tasks: readonly Task[];
  grade: ReturnType<typeof containerGrader>;
}

/** The first ctrl-C or SIGTERM lets the running attempts end; the second one aborts the context's signal. */
async function regradeShown(
  run: ChosenRun,
  { json, concurrency, allowChanged }: RegradeFlags,
  context: CliContext,
): Promise<{ regraded: Regraded; interruption: Interruption | null }> {
  const draining = new AbortController();
  let interruption: Interruption | null = null;
  using display = json === true ? silent : showBatch(context);
  using _first = context.drainFirst((first) => {
    interruption = first;
    draining.abort();
  });
  const regraded = await regradeRun({
    ...run,
    concurrency: concurrency ?? availableParallelism(),
    allowsChanges: allowChanged === true,
    onEvent: (event) => {
      display.show(event);
      const line = json === true ? eventAsJson(event) : null;
      if (line !== null) context.stdout.write(`${jsonText(line)}\n`);
    },
    drain: draining.signal,
    signal: context.signal,
  });
  return { regraded, interruption };
}

async function printEnd(
  folder: string,
  regraded: Regraded,
  { flags, context }: { flags: RegradeFlags; context: CliContext },
): Promise<void> {
  const { stdout, stderr } = context;
  const summary = await writeReports(folder, regraded);
  if (flags.json === true) {
    const end = endAsJson({ kind: "ended", stop: regraded.stop }, summary);
    return await write(stdout, `${jsonText(end)}\n`);
  }
  const comparison = compareRuns(regraded.before, regraded);
  const changed = comparison.tasks.filter(({ change }) => change !== "same");
  if (changed.length > 0) await writeTable(stdout, taskRows(changed));
  await say(stdout, comparisonText(comparison));
  if (regraded.left.length > 0)
    await say(
      stderr,
      `attempts at these tasks keep their grades, because their tests run in the agent's container: ${neutraliseLine(regraded.left.join(", "))}\n`,
    );
  await say(stderr, `the former grades are in ${regraded.former}\n`);
}
