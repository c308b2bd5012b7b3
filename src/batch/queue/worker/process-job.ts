import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { BrigError, isBrigError } from "../../../errors.js";
import { readVersion } from "../../../version.js";
import type { AttemptStage } from "../../runs/attempt/attempt.js";
import { folderEntries, pack } from "../bundle/pack.js";
import { type AttemptJob, jobIdOf, storeKeys } from "../records.js";
import type { ObjectStore } from "../store/object-store.js";
import type { FetchedTasks } from "./fetched-tasks.js";
import type { RunSettings } from "./run-settings.js";
import type { AttemptEnding } from "./worker-event.js";

/** Why an attempt is ended before its end. */
export class AttemptInterruption extends Error {
  readonly ending: "cancelled" | "returned" | "taken-over";

  constructor(ending: AttemptInterruption["ending"]) {
    super(`the attempt is ${ending}`);
    this.ending = ending;
  }
}

export interface JobContext {
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
export async function processJob(job: AttemptJob, context: JobContext): Promise<AttemptEnding> {
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
