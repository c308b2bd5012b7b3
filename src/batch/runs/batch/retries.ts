import { type AttemptResult, infrastructureClasses } from "../results/attempt-result.js";

type FailureClass = (typeof infrastructureClasses)[number];

/** Number of further tries that an attempt gets after failures of each class. */
export type RetryPolicy = Readonly<Record<FailureClass, number>>;

const DEFAULT_RETRIES = 2;
/** Building the same image again seldom helps; pulling it may. */
const IMAGE_RETRIES = 1;

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** The policy with some numbers of the user's: one for all classes, or one for each that is named. */
export function retryPolicy(
  given: { all?: number | undefined; byClass?: Partial<RetryPolicy> } = {},
): RetryPolicy {
  const usual = (name: FailureClass) =>
    given.all ?? (name === "image-failed" ? IMAGE_RETRIES : DEFAULT_RETRIES);
  const retries = infrastructureClasses.map((name) => [name, given.byClass?.[name] ?? usual(name)]);
  return Object.fromEntries(retries);
}

/** Whether the infrastructure ended this try, or kept it from its grade, and the attempt gets another one. */
export function deservesRetry({ status, failure, tries }: AttemptFate, policy: RetryPolicy): boolean {
  if (status === "cancelled" || failure === null || failure.class === "ungradable") return false;
  const earlier = tries.filter((one) => one.failure.class === failure.class).length;
  return earlier < policy[failure.class];
}

/** Work of the next try: an agent whose work is kept need not do it again. */
export function workOfNextTry({ status }: Pick<AttemptFate, "status">): "run" | "grade" {
  return status === "unscored" ? "grade" : "run";
}

type AttemptFate = Pick<AttemptResult, "status" | "failure" | "tries">;

/** Doubles with each try; `random` in [0, 1) spreads tries that failed together. */
export function retryWaitMs(triesSoFar: number, random: () => number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (triesSoFar - 1));
  return longest * (0.5 + random() / 2);
}
