import type { BrigError } from "../errors.js";
import { sharedSignal } from "../lib/shared-signal.js";

export interface Turn {
  id: string;
  /** Ends everything of this turn. */
  stop: AbortController;
  /** Aborted by `stop` or from outside. */
  signal: AbortSignal;
}

export type TurnEnding =
  | { status: "completed" }
  | { status: "interrupted" }
  | { status: "failed"; error: BrigError };

export function openTurn(id: string, outside: AbortSignal | undefined): Turn {
  const stop = new AbortController();
  const signal = outside === undefined ? stop.signal : AbortSignal.any([outside, stop.signal]);
  return { id, stop, signal: sharedSignal(signal) };
}
