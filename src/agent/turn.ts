import type { BrigError } from "../errors.js";
import { AnySignal } from "../lib/any-signal.js";

export interface Turn extends Disposable {
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
  const either = new AnySignal([outside, stop.signal]);
  return { id, stop, signal: either.signal, [Symbol.dispose]: () => either[Symbol.dispose]() };
}
