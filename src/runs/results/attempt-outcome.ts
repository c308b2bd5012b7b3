import type { AttemptResult } from "./attempt-result.js";

/** What a run keeps in memory of each attempt that has ended; the rest is in its files. */
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
  /** How it passed; null if it did not. */
  passKind: PassKind | null;
};

export const passKinds = ["separate", "shared", "shared-outside", "shared-unconfirmed"] as const;

/**
 * A pass of separate verifiers only; one in the agent's container that a fresh one with nothing but the work gives as well; one that rests on
 * something outside of the work; and one of which that is not known.
 */
export type PassKind = (typeof passKinds)[number];

/** How an attempt passed, by the least of its steps; null if it did not. */
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

/** What a pass rests on besides the work: paths in the agent's container, or a sentence. */
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
