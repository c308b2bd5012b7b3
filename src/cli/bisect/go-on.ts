import type { BisectOutcome } from "./bisect-states.js";
import type { SessionState } from "./session-states.js";

/**
 * The last step of the session whose state is still good, to resume the session from there; null if it is not known.
 */
export function stepBefore(
  states: readonly SessionState[],
  { lastGood, firstBad, unjudged }: BisectOutcome & { kind: "found" },
): number | null {
  const next = ownStep(unjudged[0] ?? firstBad);
  if (next !== null) return next > 1 ? next - 1 : null;
  const before = states.slice(0, states.indexOf(lastGood) + 1).map(ownStep);
  return before.findLast((step) => step !== null) ?? null;
}

/** The session's step that led to a state; null if an agent of the session, or something unknown, led to it. */
function ownStep({ origin }: SessionState): number | null {
  return origin.kind === "step" && origin.agent === null ? origin.change.step : null;
}
