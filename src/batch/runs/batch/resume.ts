import type { Task } from "../../tasks/task.js";
import type { AttemptOutcome } from "../results/attempt-outcome.js";
import { outcomeOf } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { type AttemptPlace, attemptFolder, attemptKey, tryFolder } from "../results/run-files.js";
import type { WaitingAttempt } from "./attempt-schedule.js";
import { deservesRetry, type RetryPolicy, workOfNextTry } from "./retries.js";
import type { RunStore } from "./run-store.js";

export interface ResumeOptions {
  retries: RetryPolicy;
  /** Run attempts again that the infrastructure has ended for good, or that could not be graded at all. */
  retriesInfrastructure: boolean;
  /** Grade attempts whose agent is done but that have no score. */
  scoresUnscored: boolean;
}

/** State of a run as its folder shows it, and the work that is left. */
export interface RunState {
  finished: AttemptOutcome[];
  waiting: WaitingAttempt[];
  /** Attempts that have ended but are missing in `results.jsonl`. */
  recovered: AttemptResult[];
  /** Whether lines have to be removed from `results.jsonl`: torn ones, and those of attempts that run again. */
  needsRewrite: boolean;
}

/** The attempts at tasks, the first at each task before the second at any. */
export function plannedAttempts(tasks: readonly Task[], attempts: number): { task: Task; attempt: number }[] {
  const numbers = Array.from({ length: attempts }, (_, index) => index + 1);
  return numbers.flatMap((attempt) => tasks.map((task) => ({ task, attempt })));
}

/** Decides by `results.jsonl`, and reads the files of those attempts only that are missing in it. */
export async function readRunState(
  store: RunStore,
  planned: readonly { task: Task; attempt: number }[],
  options: ResumeOptions,
): Promise<RunState> {
  const { outcomes, isDamaged } = await store.readOutcomes();
  const folders = await store.attemptFolders();
  const state: RunState = { finished: [], waiting: [], recovered: [], needsRewrite: isDamaged };
  for (const { task, attempt } of planned) {
    const place = { task: task.name, attempt };
    const outcome = outcomes.get(attemptKey(place));
    if (outcome === undefined) await addUnlisted({ task, attempt }, { store, folders, state, options });
    else if (addOutcome({ task, attempt }, outcome, { state, options }) === "again")
      state.needsRewrite = true;
  }
  return state;
}

/** An attempt with a line in `results.jsonl`. "again" if that line is not its last. */
function addOutcome(
  planned: { task: Task; attempt: number },
  outcome: AttemptOutcome,
  { state, options }: { state: RunState; options: ResumeOptions },
): "finished" | "again" {
  const waiting = furtherWork(planned, outcome, options);
  if (waiting === null) state.finished.push(outcome);
  else state.waiting.push(waiting);
  return waiting === null ? "finished" : "again";
}

interface Unlisted {
  store: RunStore;
  folders: ReadonlySet<string>;
  state: RunState;
  options: ResumeOptions;
}

/** An attempt without a line: it has not begun, is torn, or ended just before its line was written. */
async function addUnlisted(planned: { task: Task; attempt: number }, run: Unlisted): Promise<void> {
  const { store, folders, state, options } = run;
  const place = { task: planned.task.name, attempt: planned.attempt };
  const result = folders.has(attemptFolder(place)) ? await store.readResult(place) : null;
  if (result === null || result.status === "cancelled") {
    const tries = await earlierTries(place, { store, folders });
    state.waiting.push({ ...planned, work: "run", tries });
    return;
  }
  if (deservesRetry(result, options.retries))
    state.waiting.push({ ...planned, work: workOfNextTry(result), tries: withFailure(result) });
  else if (addOutcome(planned, outcomeOf(result), { state, options }) === "finished")
    state.recovered.push(result);
}

/** Further work that the user asks for on an ended attempt; null if the attempt is to stay as it is. */
function furtherWork(
  planned: { task: Task; attempt: number },
  outcome: AttemptOutcome,
  { retriesInfrastructure, scoresUnscored }: ResumeOptions,
): WaitingAttempt | null {
  if (outcome.status === "unscored" && scoresUnscored)
    return { ...planned, work: "grade", tries: outcome.tries };
  const hasEnded = outcome.status === "infrastructure" || outcome.failure?.class === "ungradable";
  return hasEnded && retriesInfrastructure ? { ...planned, work: "run", tries: withFailure(outcome) } : null;
}

/** The tries before a torn one, from the folder of the last that has ended. */
async function earlierTries(
  place: AttemptPlace,
  { store, folders }: Pick<Unlisted, "store" | "folders">,
): Promise<AttemptResult["tries"]> {
  let last = 0;
  while (folders.has(tryFolder(place, last + 1))) last++;
  const result = last === 0 ? null : await store.readResult(place, tryFolder(place, last));
  return result === null ? [] : withFailure(result);
}

type EndedTry = Pick<AttemptOutcome, "tries" | "startedAt" | "endedAt" | "failure">;

function withFailure({ tries, startedAt, endedAt, failure }: EndedTry): AttemptResult["tries"] {
  return failure === null ? tries : [...tries, { startedAt, endedAt, failure }];
}
