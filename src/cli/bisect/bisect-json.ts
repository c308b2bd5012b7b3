import type { BisectOutcome, Tried } from "./bisect-states.js";
import type { SessionState } from "./session-states.js";
import type { Attempt } from "./try-state.js";

/** The outcome as `--json` prints it. */
export function outcomeAsJson(
  outcome: BisectOutcome,
  { session, tries, goOnAt }: { session: string; tries: readonly Tried[]; goOnAt: number | null },
): object {
  const shared = { session, outcome: outcome.kind };
  const tried = tries.map(({ state, attempt }) => ({ ...placeAsJson(state), ...attemptAsJson(attempt) }));
  if (outcome.kind !== "found") return { ...shared, tries: tried };
  const { lastGood, firstBad, unjudged } = outcome;
  return {
    ...shared,
    lastGood: stateAsJson(lastGood),
    firstBad: stateAsJson(firstBad),
    unjudged: unjudged.map(stateAsJson),
    resumeAt: goOnAt,
    tries: tried,
  };
}

function stateAsJson(state: SessionState): object {
  const { origin } = state;
  if (origin.kind !== "step") return { ...placeAsJson(state), call: null, count: null, changes: null };
  const { call, point } = origin.change;
  return {
    ...placeAsJson(state),
    call: call === null ? null : { id: call.callId, name: call.name, input: call.input },
    count: point.count,
    changes: point.changes,
  };
}

function placeAsJson({ snapshot, point, origin }: SessionState): object {
  const step = origin.kind === "step" ? origin.change.step : null;
  const agent = origin.kind === "step" ? origin.agent : null;
  return { snapshot, point, kind: kindOf(origin), step, agent };
}

function kindOf(origin: SessionState["origin"]): string {
  if (origin.kind !== "step") return origin.kind;
  return origin.change.call === null ? "undo" : "call";
}

function attemptAsJson(attempt: Attempt): object {
  if (attempt.kind === "not-made") return { verdict: "skip", error: attempt.error.message };
  const { verdict, status } = attempt;
  const { exitCode, timedOut, durationMs } = status;
  return { verdict, exitCode, timedOut, durationMs };
}
