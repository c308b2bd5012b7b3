import { createHash, randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { AfterAbort } from "../../../lib/time/after-abort.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { pause } from "../../../lib/time/pause.js";
import { sharedSignal } from "../../../lib/time/shared-signal.js";
import { SharedWork } from "../../../lib/time/shared-work.js";
import { readVersion } from "../../../version.js";
import { writeResult } from "../../runs/attempt/attempt.js";
import { AttemptProgress } from "../../runs/attempt/attempt-progress.js";
import type { AttemptOrder, AttemptRunner } from "../../runs/batch/run-batch.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { parseResult } from "../../runs/results/results-file.js";
import { RESULT_FILE } from "../../runs/results/run-files.js";
import type { AttemptQueue } from "../attempt-queue.js";
import { unpack } from "../bundle.js";
import { type AttemptJob, jobIdOf, type RunSpec, storeKeys } from "../records.js";
import type { ObjectStore } from "../store.js";
import type { JobEnd, PendingJobs } from "./pending-jobs.js";
import type { TaskPackages } from "./task-packages.js";

export interface QueueRunnerOptions {
  /** The folder of the run. */
  folder: string;
  host: string;
  spec: RunSpec;
  queue: AttemptQueue;
  pending: PendingJobs;
  store: ObjectStore;
  packages: TaskPackages;
  /** Aborting it takes back the attempts that no worker has taken. */
  drain: AbortSignal;
}

const RECORD_EVERY_MS = 60_000;
/** A worker that was told to end an attempt, and has not, is not waited for any longer. */
const CANCEL_WAIT_MS = 15_000;
/** Nor is a Redis server that is gone, for which commands wait. */
const GIVE_UP_MS = 20_000;

interface Run {
  id: string;
  /** The checksum of its specification. */
  spec: string;
}

/** Runs attempts on the workers of a queue. */
export class QueueRunner implements AttemptRunner, AsyncDisposable {
  readonly #options: QueueRunnerOptions;
  readonly #opening = new SharedWork<Run>();
  #run: Run | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: QueueRunnerOptions) {
    this.#options = options;
  }

  async run(order: AttemptOrder): Promise<AttemptResult> {
    using late = new AfterAbort(order.signal, GIVE_UP_MS);
    try {
      return await beforeAbort(this.#onWorkers(order), late.signal);
    } catch (error) {
      if (!late.signal.aborted) throw error;
      return await this.#cancelled(order);
    }
  }

  async #onWorkers(order: AttemptOrder): Promise<AttemptResult> {
    const run = this.#run ?? (await this.#opening.join("run", () => this.#open()));
    const { task, attempt, tries } = order;
    const job: AttemptJob = {
      schemaVersion: 1,
      brigVersion: readVersion(),
      run: run.id,
      spec: run.spec,
      package: await this.#options.packages.of(task),
      task: task.name,
      taskChecksum: task.checksum,
      attempt,
      try: tries.length + 1,
    };
    const result = await this.#resultOf(job, order);
    await this.#options.queue.count(run.id, { isFailed: result.status === "infrastructure" });
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
  }

  /** Opens the run only now, since the folder belongs to it once its first attempt runs. */
  async #open(): Promise<Run> {
    const { folder, host, queue, spec, store } = this.#options;
    const id = await runIdentity(folder);
    const text = JSON.stringify(spec);
    const checksum = createHash("sha256").update(text).digest("hex");
    const file = join(folder, `spec.${randomBytes(6).toString("hex")}.new`);
    try {
      await writeFile(file, text, { flag: "wx" });
      const sizeBytes = Buffer.byteLength(text);
      await store.put(storeKeys.spec(id, checksum), { path: file, sizeBytes, sha256: checksum });
    } finally {
      await rm(file, { force: true });
    }
    const record = { run: id, host, folder, startedAt: new Date().toISOString() };
    await queue.allowRun(id);
    await queue.sayRun(record);
    this.#timer = setInterval(() => void queue.sayRun(record).catch(() => undefined), RECORD_EVERY_MS);
    this.#run = { id, spec: checksum };
    return this.#run;
  }

  async #resultOf(job: AttemptJob, order: AttemptOrder): Promise<AttemptResult> {
    const { queue, store } = this.#options;
    const key = storeKeys.result(jobIdOf(job));
    for (;;) {
      // An earlier submitter may have gone away before it took the result.
      const end = (await store.has(key)) ? ({ kind: "result" } as const) : await this.#end(job, order);
      switch (end.kind) {
        case "result": {
          const result = await receiveAttempt(store, { key, order, folder: this.#options.folder });
          await this.#tidy(job, key);
          return result;
        }
        case "cancelled":
        case "missing":
          await queue.remove(jobIdOf(job));
          if (order.signal.aborted || this.#options.drain.aborted) return await this.#cancelled(order);
          if (await queue.isRunCancelled(job.run)) throw cancelledRun(job.run);
          // Redis has lost it, or it was cancelled for an earlier submitter.
          continue;
        case "fault":
          await queue.remove(jobIdOf(job));
          throw faultOf(end);
        case "lost":
          await queue.remove(jobIdOf(job));
          return await this.#ended(order, (progress) =>
            progress.fail({
              class: "engine-gone",
              message: "the workers that ran this attempt went away, one after the other",
              evidence: [end.reason],
            }),
          );
        default:
          return end satisfies never;
      }
    }
  }

  /** Puts the attempt into the queue if it is not there, and waits for its end. */
  async #end(job: AttemptJob, { signal, onStage }: AttemptOrder): Promise<JobEnd> {
    const { queue, pending, drain } = this.#options;
    const jobId = jobIdOf(job);
    if (signal.aborted || drain.aborted) return { kind: "missing" };
    await queue.add(job);
    const takeBack = () => void queue.remove(jobId).catch(() => undefined);
    let giveUp: (end: JobEnd) => void = () => undefined;
    const givenUp = new Promise<JobEnd>((resolve) => {
      giveUp = resolve;
    });
    let timer: NodeJS.Timeout | undefined;
    const cancel = () => {
      takeBack();
      void queue.cancel(job.run, jobId).catch(() => undefined);
      timer = setTimeout(() => giveUp({ kind: "missing" }), CANCEL_WAIT_MS);
    };
    const over = new AbortController();
    sharedSignal(drain).addEventListener("abort", takeBack, { once: true, signal: over.signal });
    sharedSignal(signal).addEventListener("abort", cancel, { once: true, signal: over.signal });
    try {
      return await Promise.race([pending.ended(jobId, onStage), givenUp]);
    } finally {
      over.abort();
      clearTimeout(timer);
    }
  }

  /** The result is durable here, so neither the store nor the queue needs to have it. */
  async #tidy(job: AttemptJob, key: string): Promise<void> {
    await this.#options.queue.remove(jobIdOf(job));
    await this.#options.store.remove(key).catch(() => undefined);
  }

  async #cancelled(order: AttemptOrder): Promise<AttemptResult> {
    return await this.#ended(order, (progress) => progress.cancel());
  }

  /** Writes the result of an attempt of which no worker has one. */
  async #ended(order: AttemptOrder, end: (progress: AttemptProgress) => void): Promise<AttemptResult> {
    const progress = new AttemptProgress({ ...order, agent: this.#options.spec.settings.agent });
    end(progress);
    const result = progress.result(new Date());
    await writeResult(order.folder, result);
    return result;
  }
}

function cancelledRun(run: string): BrigError {
  return new BrigError(`the run ${run} was cancelled with brig queue cancel`, {
    code: "aborted",
    hint: "the same command goes on with it",
  });
}

function faultOf({ worker, message, hint }: JobEnd & { kind: "fault" }): BrigError {
  return new BrigError(`the worker ${worker} cannot run attempts of this run: ${message}`, {
    code: "usage.invalid",
    hint: hint ?? undefined,
  });
}

const FILE = "queue.json";
const MAX_IDENTITY_BYTES = 64 * 1024;

const identitySchema = z.strictObject({
  schemaVersion: z.literal(1),
  run: z.string().regex(/^[0-9a-f]{16}$/),
});

/** The name that the run of a folder has in queues. It is made once, so that the same command finds its attempts again. */
async function runIdentity(folder: string): Promise<string> {
  const file = join(folder, FILE);
  const read = await readTextFile(file, MAX_IDENTITY_BYTES);
  if (read.kind === "missing") {
    const run = randomBytes(8).toString("hex");
    await writeDurably(file, `${JSON.stringify({ schemaVersion: 1, run })}\n`);
    return run;
  }
  const parsed = identitySchema.safeParse(read.kind === "text" ? parseJson(read.text) : undefined);
  if (parsed.success) return parsed.data.run;
  throw new BrigError(`${file} does not say which run in the queue this is`, {
    code: "usage.invalid",
    hint: "remove the file: what is in the queue is then run again",
    cause: parsed.error,
  });
}

const MAX_ATTEMPT_BYTES = 4 * 1024 ** 3;
/** A network file system may show a new file to other machines only after a while. */
const LOOKS = 60;
const LOOK_EVERY_MS = 1000;

/** Brings the folder of an attempt from the store. Its `result.json` is written last. Error: `store.failed`. */
async function receiveAttempt(
  store: ObjectStore,
  { key, order, folder }: { key: string; order: AttemptOrder; folder: string },
): Promise<AttemptResult> {
  const { task, attempt, tries } = order;
  // A name that the next run in this folder removes if this one is killed.
  const archive = join(folder, `result.${randomBytes(6).toString("hex")}.new`);
  try {
    await fetchSoon(store, { key, archive });
    const kept = await unpack(archive, {
      into: order.folder,
      allowsLinks: false,
      keeps: [RESULT_FILE],
      maxBytes: MAX_ATTEMPT_BYTES,
    });
    const result = parseResult(kept.get(RESULT_FILE)?.toString() ?? "");
    if (result === null || result.task !== task.name || result.attempt !== attempt)
      throw notItsResult(key, store);
    if (result.taskChecksum !== task.checksum) throw notItsResult(key, store);
    const complete = { ...result, tries };
    await writeResult(order.folder, complete);
    return complete;
  } finally {
    await rm(archive, { force: true });
  }
}

async function fetchSoon(
  store: ObjectStore,
  { key, archive }: { key: string; archive: string },
): Promise<void> {
  for (let looks = 1; ; looks++) {
    if ((await store.get(key, archive, { maxBytes: MAX_ATTEMPT_BYTES })) === "fetched") return;
    if (looks === LOOKS)
      throw new BrigError(`a worker has put ${key} into its store, and it is not in ${store.name}`, {
        code: "store.failed",
        hint: "give this command and all workers the same --results",
      });
    await pause(LOOK_EVERY_MS);
  }
}

function notItsResult(key: string, { name }: ObjectStore): BrigError {
  return new BrigError(`${key} in ${name} is not the result of the attempt that it is kept for`, {
    code: "store.failed",
    hint: "remove it from the store, and run the same command again",
  });
}
