import type { TimeTaken } from "../processors.js";
import type { AttemptResult } from "../results/attempt-result.js";

type StepVerification = NonNullable<AttemptResult["steps"][number]["verification"]>;

/** Result of a verifier. Without a valid reward `rewards` is null, which counts as 0. */
export interface Verification extends StepVerification {
  /** Time that the tests took; null if they did not run to an end. */
  time: TimeTaken | null;
  rewards: Readonly<Record<string, number>> | null;
}
