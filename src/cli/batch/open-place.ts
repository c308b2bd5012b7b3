import { attemptLimits, requireRoomFor } from "../../batch/index.js";
import { openBatchImages } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { connectEngine } from "../../sandbox/index.js";
import type { BatchFlags } from "./batch-flags.js";
import type { BatchPlace, OpenPlaceOptions } from "./batch-place.js";
import { requireImages } from "./images/ready-images.js";

/** This machine's engine, or the queue of `--queue`. */
export async function openPlace(options: OpenPlaceOptions): Promise<BatchPlace> {
  const { flags } = options;
  if (flags.queue === undefined) {
    refuse(flags, forQueues, { problem: "is for a queue", hint: "give --queue too, or leave it out" });
    return await openEnginePlace(options);
  }
  refuse(flags, forEngine, {
    problem: "is for the engine of this machine, which runs nothing with --queue",
    hint: "leave it out",
  });
  const { openQueuePlace } = await import("../queue/queue-place.js");
  return await openQueuePlace(options);
}

type Named = readonly (readonly [keyof BatchFlags, string])[];

const forQueues: Named = [
  ["results", "--results"],
  ["redisCa", "--redis-ca"],
];

const forEngine: Named = [
  ["prebuild", "--prebuild"],
  ["prebuildOnly", "--prebuild-only"],
  ["offline", "--offline"],
  ["imageBudget", "--image-budget"],
  ["scoreUnscored", "--score-unscored"],
];

function refuse(flags: BatchFlags, names: Named, { problem, hint }: { problem: string; hint: string }): void {
  const [, given] = names.find(([name]) => flags[name] !== undefined) ?? [];
  if (given !== undefined) throw invalidUsage(`${given} ${problem}`, hint);
}

async function openEnginePlace(options: OpenPlaceOptions): Promise<BatchPlace> {
  const { flags, context, config, tasks, settings } = options;
  const engine = await connectEngine({ env: context.environment });
  await requireRoomFor(engine, tasks, attemptLimits(settings));
  const images = openBatchImages(flags, { engine, config, context });
  await requireImages(tasks, { images, engine });
  return {
    attempts: { kind: "engine", engine, images },
    concurrency: flags.concurrency,
    images,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
