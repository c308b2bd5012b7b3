import { findBorder, type Verdict } from "./search.js";
import type { SessionState } from "./session-states.js";
import type { Attempt } from "./try-state.js";

/** The outcome of a bisection. */
export type BisectOutcome =
  /** `unjudged` are the states between the two that the command could not judge. */
  | { kind: "found"; lastGood: SessionState; firstBad: SessionState; unjudged: readonly SessionState[] }
  | { kind: "fails-at-start" }
  | { kind: "passes-at-end" }
  /** The command could not judge the first or the last state. */
  | { kind: "cannot-judge" }
  /** The way in which the command ended asks for the search to stop. */
  | { kind: "stopped" };

/** A state that was tried. */
export interface Tried {
  state: SessionState;
  attempt: Attempt;
}

/**
 * Finds the first of at least two states in which an attempt fails. All attempts are in `tries`, in their order; if
 * nothing was found, the last one says why. Throws the errors of `attempt`, and the reason why the first or the last
 * state could not be made.
 */
export async function bisectStates(
  states: readonly SessionState[],
  attempt: (state: SessionState) => Promise<Attempt>,
): Promise<{ outcome: BisectOutcome; tries: readonly Tried[] }> {
  const tries: Tried[] = [];
  const judge = async (position: number): Promise<Verdict> => {
    const state = stateAt(states, position);
    const made = await attempt(state);
    tries.push({ state, attempt: made });
    if (made.kind === "ran") return made.verdict;
    const isNeeded = position === 0 || position === states.length - 1;
    if (isNeeded) throw made.error;
    return "skip";
  };
  return { outcome: await search(states, judge), tries };
}

async function search(
  states: readonly SessionState[],
  judge: (position: number) => Promise<Verdict>,
): Promise<BisectOutcome> {
  const first = await judge(0);
  if (first === "bad") return { kind: "fails-at-start" };
  const last = first === "good" ? await judge(states.length - 1) : first;
  if (last === "good") return { kind: "passes-at-end" };
  if (last !== "bad") return { kind: last === "stop" ? "stopped" : "cannot-judge" };
  const border = await findBorder(states.length, judge);
  if (border === null) return { kind: "stopped" };
  const { lastGood, firstBad } = border;
  return {
    kind: "found",
    lastGood: stateAt(states, lastGood),
    firstBad: stateAt(states, firstBad),
    unjudged: states.slice(lastGood + 1, firstBad),
  };
}

function stateAt(states: readonly SessionState[], position: number): SessionState {
  const state = states[position];
  if (state === undefined) throw new RangeError(`there is no state ${position}`);
  return state;
}
