import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Job, WaitingError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { BrigError, isBrigError } from "../../../errors.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { readHostProcesses } from "../../../lib/owner.js";
import { AfterAbort } from "../../../lib/time/after-abort.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { sharedSignal } from "../../../lib/time/shared-signal.js";
import { readVersion } from "../../../version.js";
import type { AttemptStage } from "../../runs/attempt/attempt.js";
import type { AttemptRunner } from "../../runs/batch/run-batch.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { type AttemptQueue, QUEUE_NAME, QUEUE_PREFIX } from "../attempt-queue.js";
import { folderEntries, pack } from "../bundle.js";
import {
  type AttemptJob,
  attemptJobSchema,
  type JobOutcome,
  jobIdOf,
  type RunSpec,
  runSpecSchema,
  storeKeys,
} from "../records.js";
import type { ObjectStore } from "../store.js";
import { checksumOf, FetchedTasks } from "./fetched-tasks.js";

export interface RunWorkerOptions extends Pick<RunSettingsOptions, "openRunner"> {
  /** Name of this machine, for people. */
  host: string;
  /** Number of attempts that run at a time. */
  slots: number;
  /** A worker that is not heard of for so long loses its attempts to others. */
  leaseMs: number;
  redis: Redis;
  queue: AttemptQueue;
  store: ObjectStore;
  /** Made if it is missing. A directory is made in it for as long as the worker runs. */
  folder: string;
  variables: Readonly<Record<string, string | undefined>>;
  onEvent: (event: WorkerEvent) => void;
  /** Aborting it takes no more attempts. */
  drain: AbortSignal;
  /** Aborting it also gives those that run back to the queue. */
  signal: AbortSignal;
}

/** An attempt whose workers went away so often is the fault of something in it. */
const MAX_TAKE_OVERS = 3;
const HEARTBEAT_MS = 5000;
const LOOK_FOR_CANCELS_MS = 1000;
/** Time that the queue may take to hear the last of a worker that is to end at once. */
const LAST_WORDS_MS = 10_000;

/** Runs attempts until it is drained. */
export async function runWorker(options: RunWorkerOptions): Promise<void> {
  await using folder = await openWorkerFolder(options.folder);
  await new QueueWorker(options, folder.path).toEnd();
}

interface Running {
  run: string;
  jobId: string;
  interrupted: AbortController;
}

class QueueWorker {
  readonly #options: RunWorkerOptions;
  readonly #folder: string;
  readonly #name: string;
  readonly #tasks: FetchedTasks;
  readonly #settings: RunSettings;
  readonly #running = new Map<string, Running>();
  /** Work on attempts that is under way here. The queue need not hear of it. */
  readonly #working = new Set<Promise<AttemptEnding>>();
  readonly #startedAt = new Date().toISOString();
  #worker: Worker<AttemptJob, JobOutcome> | null = null;
  #attempts = 0;

  constructor(options: RunWorkerOptions, folder: string) {
    const { host, store, variables, openRunner } = options;
    this.#options = options;
    this.#folder = folder;
    this.#name = `${host}-${process.pid}-${randomBytes(2).toString("hex")}`;
    this.#tasks = new FetchedTasks({ store, folder, variables });
    this.#settings = new RunSettings({ store, folder, openRunner });
  }

  async toEnd(): Promise<void> {
    const { drain, signal, slots, onEvent, queue } = this.#options;
    await this.#sayAlive();
    const heartbeat = setInterval(() => void this.#sayAlive().catch(() => undefined), HEARTBEAT_MS);
    const looks = setInterval(() => void this.#endCancelled().catch(() => undefined), LOOK_FOR_CANCELS_MS);
    const worker = this.#open();
    this.#worker = worker;
    using stop = new AnySignal([drain, signal]);
    using late = new AfterAbort(signal, LAST_WORDS_MS);
    try {
      onEvent({ kind: "started", worker: this.#name, slots });
      if (!stop.signal.aborted) await once(stop.signal, "abort");
      onEvent({ kind: "draining", running: this.#running.size });
      await this.#heard(
        this.#sayAlive().catch(() => undefined),
        late.signal,
      );
    } finally {
      await this.#heard(worker.close(), late.signal);
      clearInterval(heartbeat);
      clearInterval(looks);
    }
    await this.#heard(queue.forgetWorker(this.#name), late.signal);
    onEvent({ kind: "ended", attempts: this.#attempts });
  }

  /**
   * Waits until the queue has heard something, for which its server has to be there. After `late` only what is done here
   * is waited for: what the queue has not heard of attempts it learns by their leases.
   */
  async #heard(saying: Promise<void>, late: AbortSignal): Promise<void> {
    try {
      await beforeAbort(saying, late);
    } catch (error) {
      if (!late.aborted) throw error;
      await Promise.allSettled(this.#working);
    }
  }

  #open(): Worker<AttemptJob, JobOutcome> {
    const { redis, slots, leaseMs } = this.#options;
    const worker = new Worker<AttemptJob, JobOutcome>(
      QUEUE_NAME,
      async (job, token = "") => await this.#run(job, token),
      {
        connection: redis,
        prefix: QUEUE_PREFIX,
        name: this.#name,
        concurrency: slots,
        lockDuration: leaseMs,
        stalledInterval: leaseMs,
        maxStalledCount: MAX_TAKE_OVERS,
      },
    );
    // The connection reports its own trouble; an attempt that was lost is reported when it ends.
    worker.on("error", () => undefined);
    worker.on("lockRenewalFailed", (jobIds) => {
      for (const jobId of jobIds) this.#interrupt(jobId, "taken-over");
    });
    return worker;
  }

  async #run(job: Job<AttemptJob, JobOutcome>, token: string): Promise<JobOutcome> {
    const { onEvent, signal, store, leaseMs } = this.#options;
    const jobId = job.id ?? "";
    const parsed = attemptJobSchema.safeParse(job.data);
    if (!parsed.success) return this.#outcome(unreadable, job, token);
    const { run, task, attempt } = parsed.data;
    const running = { run, jobId, interrupted: new AbortController() };
    const stop = () => running.interrupted.abort(new AttemptInterruption("returned"));
    const over = new AbortController();
    sharedSignal(signal).addEventListener("abort", stop, { once: true, signal: over.signal });
    if (signal.aborted) stop();
    this.#running.set(jobId, running);
    onEvent({ kind: "attempt-started", run, task, attempt });
    try {
      const { signal: interrupted } = running.interrupted;
      const working = processJob(parsed.data, {
        store,
        tasks: this.#tasks,
        settings: this.#settings,
        folder: this.#folder,
        signal: interrupted,
        onStage: (stage) => void job.updateProgress({ stage }).catch(() => undefined),
        isOwn: async () =>
          (await beforeAbort(job.extendLock(token, leaseMs), interrupted).catch(() => 0)) === 1,
      });
      this.#working.add(working);
      const ending = await working.finally(() => this.#working.delete(working));
      this.#attempts++;
      onEvent({ kind: "attempt-ended", run, task, attempt, ending });
      return await this.#outcome(ending, job, token);
    } finally {
      over.abort();
      this.#running.delete(jobId);
    }
  }

  async #outcome(ending: AttemptEnding, job: Job, token: string): Promise<JobOutcome> {
    switch (ending.kind) {
      case "finished":
      case "known":
        return { kind: "result", worker: this.#name };
      case "cancelled":
        return { kind: "cancelled", worker: this.#name };
      case "returned":
        // Closing keeps this worker from taking the job again.
        void this.#worker?.close();
        await job.moveToWait(token);
        throw new WaitingError();
      case "taken-over":
        // Whoever has it now says how it ended: what this worker says is refused by the queue.
        throw new AttemptInterruption("taken-over");
      case "fault":
        return { kind: "fault", worker: this.#name, message: ending.message, hint: ending.hint };
      default:
        return ending satisfies never;
    }
  }

  #interrupt(jobId: string, ending: AttemptInterruption["ending"]): void {
    this.#running.get(jobId)?.interrupted.abort(new AttemptInterruption(ending));
  }

  async #endCancelled(): Promise<void> {
    const cancelled = await this.#options.queue.cancelledAmong([...this.#running.values()]);
    for (const jobId of cancelled) this.#interrupt(jobId, "cancelled");
  }

  async #sayAlive(): Promise<void> {
    const { queue, host, slots, drain, signal } = this.#options;
    await queue.sayWorker(this.#name, {
      name: host,
      pid: process.pid,
      brigVersion: readVersion(),
      slots,
      startedAt: this.#startedAt,
      isDraining: drain.aborted || signal.aborted,
    });
  }
}

const unreadable: AttemptEnding = {
  kind: "fault",
  message: "the queue has an attempt that this version of brig cannot read",
  hint: "use one version of brig on all machines",
};

interface WorkerAttempt {
  run: string;
  task: string;
  attempt: number;
}

/** Ending of an attempt for this worker. */
type AttemptEnding =
  | { kind: "finished"; status: AttemptResult["status"]; reward: number | null }
  /** Another worker had put its result into the store before. */
  | { kind: "known" }
  | { kind: "cancelled" }
  /** The attempt waits in the queue again, since this worker is stopping. */
  | { kind: "returned" }
  /** Another worker has taken it over, because this one had not been heard of for too long. */
  | { kind: "taken-over" }
  | { kind: "fault"; message: string; hint: string | null };

export type WorkerEvent =
  | { kind: "started"; worker: string; slots: number }
  | ({ kind: "attempt-started" } & WorkerAttempt)
  | ({ kind: "attempt-ended"; ending: AttemptEnding } & WorkerAttempt)
  | { kind: "draining"; running: number }
  | { kind: "ended"; attempts: number };

/** A directory of one worker, which is removed with it. */
export interface WorkerFolder extends AsyncDisposable {
  readonly path: string;
}

/** Makes one in `parent`, and removes those that killed workers of this machine have left there. */
export async function openWorkerFolder(parent: string): Promise<WorkerFolder> {
  await makeDirectory(parent);
  const processes = await readHostProcesses(hostname());
  for (const name of await readdir(parent)) {
    const [, host, pid] = /^worker-(.+)\.([0-9]{1,10})\.[^.]+$/.exec(name) ?? [];
    if (host !== processes.host || processes.isAlive(Number(pid))) continue;
    // Folders of another user cannot be removed, and stay.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined);
  }
  const path = await mkdtemp(join(parent, `worker-${processes.host}.${process.pid}.`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Why an attempt is ended before its end. */
class AttemptInterruption extends Error {
  readonly ending: "cancelled" | "returned" | "taken-over";

  constructor(ending: AttemptInterruption["ending"]) {
    super(`the attempt is ${ending}`);
    this.ending = ending;
  }
}

interface JobContext {
  store: ObjectStore;
  tasks: FetchedTasks;
  settings: RunSettings;
  /** Exists. The folder of the attempt is made in it, and removed. */
  folder: string;
  /** Aborted with an `AttemptInterruption` as its reason. */
  signal: AbortSignal;
  onStage: (stage: AttemptStage) => void;
  /** Whether the attempt is still this worker's. */
  isOwn: () => Promise<boolean>;
}

/** Runs one attempt. Its result is in the store when it resolves to "finished" or "known". */
async function processJob(job: AttemptJob, context: JobContext): Promise<AttemptEnding> {
  try {
    return await runJob(job, context);
  } catch (error) {
    if (context.signal.aborted) return { kind: interruptionOf(context.signal) };
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "fault", message, hint: isBrigError(error) ? (error.hint ?? null) : null };
  }
}

async function runJob(job: AttemptJob, context: JobContext): Promise<AttemptEnding> {
  const { store, tasks, settings, folder, signal, onStage } = context;
  signal.throwIfAborted();
  refuseOtherVersion(job);
  // Computed from what was checked: the id in the queue could be any text, also one that leads out of the store.
  const key = storeKeys.result(jobIdOf(job));
  if (await store.has(key, signal)) return { kind: "known" };
  const runner = await settings.runnerOf(job);
  await using taken = await tasks.take(job);
  const { attempt } = job;
  const own = await mkdtemp(join(folder, "attempt-"));
  try {
    signal.throwIfAborted();
    const result = await runner.run({ task: taken.task, attempt, folder: own, tries: [], signal, onStage });
    if (signal.aborted || result.status === "cancelled") return { kind: interruptionOf(signal) };
    const archive = await pack(folderEntries(own), `${own}.tar.gz`, signal);
    // A worker that was frozen may be the second to get here.
    if (!(await context.isOwn())) return { kind: "taken-over" };
    await store.put(key, archive);
    return { kind: "finished", status: result.status, reward: result.reward };
  } finally {
    await rm(own, { recursive: true, force: true });
    await rm(`${own}.tar.gz`, { force: true });
  }
}

function interruptionOf({ reason }: AbortSignal): AttemptInterruption["ending"] {
  return reason instanceof AttemptInterruption ? reason.ending : "returned";
}

function refuseOtherVersion({ brigVersion }: AttemptJob): void {
  if (brigVersion === readVersion()) return;
  throw new BrigError(`it was submitted by brig ${brigVersion}, and this is brig ${readVersion()}`, {
    code: "usage.invalid",
    hint: "use one version of brig on all machines",
  });
}

const MAX_BYTES = 64 * 1024 * 1024;

interface RunSettingsOptions {
  store: ObjectStore;
  folder: string;
  /** Error: `usage.invalid` for settings that would give other attempts on this machine. */
  openRunner: (spec: RunSpec) => Promise<AttemptRunner>;
}

/** Runners for the attempts of each run, opened once. */
class RunSettings {
  readonly #options: RunSettingsOptions;
  readonly #runners = new Map<string, Promise<AttemptRunner>>();

  constructor(options: RunSettingsOptions) {
    this.#options = options;
  }

  async runnerOf({ run, spec }: AttemptJob): Promise<AttemptRunner> {
    const known = this.#runners.get(spec);
    if (known !== undefined) return await known;
    const opened = this.#open(run, spec);
    this.#runners.set(spec, opened);
    opened.catch(() => this.#runners.delete(spec));
    return await opened;
  }

  async #open(run: string, checksum: string): Promise<AttemptRunner> {
    const { store, folder, openRunner } = this.#options;
    const key = storeKeys.spec(run, checksum);
    const file = join(folder, `${checksum}.json`);
    await rm(file, { force: true });
    const found = await store.get(key, file, { maxBytes: MAX_BYTES });
    const isWhole = found === "fetched" && (await checksumOf(file)) === checksum;
    const parsed = isWhole ? runSpecSchema.safeParse(parseJson(await readFile(file, "utf8"))) : null;
    if (parsed?.success) return await openRunner(parsed.data);
    throw new BrigError(
      `${key} in ${store.name} ${found === "missing" ? "is missing" : "is not what was put there"}`,
      {
        code: "store.failed",
        hint: "give all workers the --results of the command that submitted the run",
        cause: parsed?.error,
      },
    );
  }
}
