import { resolve } from "node:path";
import process from "node:process";
import { currentDirectory } from "../lib/current-directory.js";
import { type Environment, readEnvironment } from "../lib/env.js";
import { connectEngine } from "../sandbox/index.js";
import type { BatchAgent, RunBatchOptions, RunBatchResult } from "./run-batch-options.js";
import { runTasks } from "./run-tasks.js";
import { requireRoomFor } from "./runs/admission/attempt-admission.js";
import type { AttemptAgent } from "./runs/agents/attempt-agent.js";
import { commandAgent, nopAgent, oracleAgent } from "./runs/agents/command-agent.js";
import { modelAgent } from "./runs/agents/model-agent.js";
import { type BatchSettings, retryPolicy } from "./runs/batch/batch-settings.js";
import { refuseUnsupportedTasks } from "./runs/batch/container-runner.js";
import { readSelected } from "./runs/batch/select-tasks.js";
import { openTaskImages } from "./runs/images/open-task-images.js";
import { refuseUnbuildable, wantedImages } from "./runs/images/wanted-images.js";
import type { Task } from "./tasks/task.js";

/** See `runBatch`. */
export async function openBatch(options: RunBatchOptions): Promise<RunBatchResult> {
  const { signal = new AbortController().signal, drain = signal, onEvent = () => undefined } = options;
  const environment = readEnvironment();
  const cwd = currentDirectory(process);
  const folder = resolve(cwd, options.folder);
  const tasks = await chosenTasks(options, { environment, cwd, signal });
  refuseUnsupportedTasks(tasks);
  const engine = await connectEngine({ env: environment });
  await requireRoomFor(engine, tasks, options.limits);
  const { isOffline, imageAliases: aliases } = options;
  const images = openTaskImages({ engine, isOffline, aliases, brigHome: environment.brigHome });
  const wanted = wantedImages(tasks);
  await refuseUnbuildable(wanted, engine);
  await images.requireLocal(wanted.map(({ image }) => image));
  const { outcome, summary } = await runTasks({
    ...agentOf(options.agent),
    ...{ folder, tasks, environment, onEvent, drain, signal },
    place: { kind: "engine", engine, images },
    attempts: options.attempts ?? 1,
    attemptLimits: options.limits ?? {},
    runtime: options.runtime,
    concurrency: options.concurrency,
    limits: options.runLimits ?? {},
    retries: retryPolicy({ byClass: options.retries ?? {} }),
    failsFast: options.failsFast ?? false,
    shuffleSeed: options.shuffleSeed,
    resume: {
      allowsChanges: options.allowsChanges ?? false,
      retriesInfrastructure: options.retriesInfrastructure ?? false,
      scoresUnscored: options.scoresUnscored ?? false,
    },
  });
  await images.removeLeft();
  return { folder, summary, outcomes: outcome.outcomes, stop: outcome.stop };
}

async function chosenTasks(
  { paths, select: selection = {}, skipsUnusable, onWarning }: RunBatchOptions,
  { environment, cwd, signal }: { environment: Environment; cwd: string; signal: AbortSignal },
): Promise<Task[]> {
  const { variables } = environment;
  const read = await readSelected(paths, { cwd, variables, signal, selection, skipsUnusable });
  const { tasks, warnings: ofPaths, skipped } = read;
  for (const message of [...ofPaths, ...skipped.map((reason) => `it was left out: ${reason}`)])
    onWarning?.({ task: "", message });
  for (const { name: task, warnings } of tasks)
    for (const message of warnings) onWarning?.({ task, message });
  return tasks;
}

function agentOf(agent: BatchAgent): {
  agent: AttemptAgent;
  agentOptions: BatchSettings["agent"]["options"];
} {
  switch (agent.kind) {
    case "oracle":
      return { agent: oracleAgent(), agentOptions: {} };
    case "nop":
      return { agent: nopAgent(), agentOptions: {} };
    case "command":
      return { agent: commandAgent(agent.command), agentOptions: { command: agent.command } };
    case "model": {
      const { model, open: openModel, costOf, options = {} } = agent;
      return {
        agent: modelAgent({ name: "model", model, openModel, costOf }),
        agentOptions: { ...options },
      };
    }
    default:
      return agent satisfies never;
  }
}
