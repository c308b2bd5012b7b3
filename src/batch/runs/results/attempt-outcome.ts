import type { AttemptResult } from "./attempt-result.js";

/** The part of an ended attempt that a run keeps in memory; the rest is in its files. */
export type AttemptOutcome = Pick<
  AttemptResult,
  | "task"
  | "attempt"
  | "taskChecksum"
  | "status"
  | "reward"
  | "failure"
  | "tries"
  | "usage"
  | "startedAt"
  | "endedAt"
> & {
  /** Kind of the pass; null if the attempt did not pass. */
  passKind: PassKind | null;
};

export const passKinds = ["separate", "shared", "shared-outside", "shared-unconfirmed"] as const;

/**
 * A pass of separate verifiers only; one in the agent's container that a fresh one with nothing but the work gives as well; one that rests on
 * something outside of the work; and one of which that is not known.
 */
export type PassKind = (typeof passKinds)[number];

/** Kind of an attempt's pass, by the weakest of its steps; null if it did not pass. */
export function passKindOf(result: Pick<AttemptResult, "status" | "reward" | "steps">): PassKind | null {
  if (!passes(result)) return null;
  const shared = result.steps.flatMap(({ verification }) =>
    verification?.mode === "shared" ? [verification] : [],
  );
  const outcomes = shared.map(({ confirmation }) => confirmation?.outcome ?? "unknown");
  if (outcomes.includes("outside")) return "shared-outside";
  if (outcomes.includes("unknown")) return "shared-unconfirmed";
  return shared.length === 0 ? "separate" : "shared";
}

/** Things besides the work that a pass rests on: paths in the agent's container, or a sentence. */
export function passRestsOn({ steps }: Pick<AttemptResult, "steps">): string[] {
  return steps.flatMap(({ verification }) => {
    const confirmation = verification?.confirmation;
    if (confirmation?.outcome !== "outside") return [];
    return confirmation.paths.length > 0 ? confirmation.paths : [confirmation.message ?? "unknown"];
  });
}

/** A reward of at least this passes. */
const PASSING_REWARD = 1;

export function passes({ status, reward }: Pick<AttemptOutcome, "status" | "reward">): boolean {
  return status === "scored" && reward !== null && reward >= PASSING_REWARD;
}

export function outcomeOf(result: AttemptResult): AttemptOutcome {
  const { task, attempt, taskChecksum, status, reward, failure, tries, usage, startedAt, endedAt } = result;
  const passKind = passKindOf(result);
  return { task, attempt, taskChecksum, status, reward, failure, tries, usage, startedAt, endedAt, passKind };
}
