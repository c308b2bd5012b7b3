import { availableParallelism, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../agent/index.js";
import type { WorkerEvent } from "../../batch/index.js";
import { openAttemptAdmission, runWorker } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { configChoice, openBatchImages, say, startTelemetry } from "../../command/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import { connectEngine } from "../../sandbox/index.js";
import { waitText } from "../batch/progress/batch-rows.js";
import { openQueue, openResults } from "./open-queue.js";
import type { WorkerFlags } from "./queue-flags.js";
import { openRunner } from "./worker-runner.js";

/** Runs attempts of a queue until SIGTERM or ctrl-C. Draining is no failure: the exit status is then 0. */
export async function runWorkerCommand(flags: WorkerFlags, context: CliContext): Promise<void> {
  const { environment, signal, stdout, stderr } = context;
  const store = await openResults(flags, context);
  const { config, warnings, notes } = await loadConfig(environment, configChoice(flags, context));
  for (const sentence of [...warnings, ...notes]) await say(stderr, `brig: ${visibleLine(sentence)}\n`);
  await startTelemetry(config, context);
  const engine = await connectEngine({ env: environment });
  await using opened = await openQueue(flags, context);
  const images = openBatchImages(flags, { engine, config, context });
  const slots = flags.concurrency ?? availableParallelism();
  const admission = openAttemptAdmission(engine, {
    maxAtOnce: slots,
    onWait: (wait) => {
      if (wait !== null) void say(stderr, `brig: ${visibleLine(waitText(wait))}\n`);
    },
  });
  const draining = new AbortController();
  using _first = context.drainFirst(() => draining.abort());
  const show = (event: WorkerEvent) =>
    void (flags.json === true
      ? stdout.write(`${jsonText(eventAsJson(event))}\n`)
      : say(stderr, `${visibleLine(eventText(event))}\n`));
  await runWorker({
    host: hostname(),
    slots,
    leaseMs: flags.lease,
    redis: opened.redis,
    queue: opened.queue,
    store,
    folder: join(tmpdir(), "brig"),
    variables: environment.variables,
    openRunner: async (spec) => await openRunner(spec, { flags, context, config, engine, images, admission }),
    onEvent: show,
    drain: draining.signal,
    signal,
  });
}

function eventText(event: WorkerEvent): string {
  switch (event.kind) {
    case "started":
      return `worker ${event.worker}: ${event.slots} attempts at a time`;
    case "attempt-started":
      return `${event.task} #${event.attempt}: started`;
    case "attempt-ended": {
      const { ending } = event;
      const score = ending.kind === "finished" && ending.reward !== null ? `, reward ${ending.reward}` : "";
      const why =
        ending.kind === "fault"
          ? `: ${ending.message}`
          : ending.kind === "finished"
            ? `, ${ending.status}`
            : "";
      return `${event.task} #${event.attempt}: ${ending.kind}${why}${score}`;
    }
    case "draining":
      return `no more attempts are taken; ${event.running} are running`;
    case "ended":
      return `${event.attempts} attempts have ended here`;
    default:
      return event satisfies never;
  }
}

function eventAsJson(event: WorkerEvent): object {
  switch (event.kind) {
    case "started":
      return { type: "worker.started", worker: event.worker, slots: event.slots };
    case "attempt-started":
      return { type: "attempt.started", run: event.run, task: event.task, attempt: event.attempt };
    case "attempt-ended": {
      const { run, task, attempt, ending } = event;
      return { type: "attempt.ended", run, task, attempt, ending };
    }
    case "draining":
      return { type: "worker.draining", running: event.running };
    case "ended":
      return { type: "worker.ended", attempts: event.attempts };
    default:
      return event satisfies never;
  }
}
