import { setMaxListeners } from "node:events";

/**
 * Allows any number of listeners, since every running request and call adds one. With more than ten Node
 * would print a warning about a leak onto the terminal.
 */
export function sharedSignal<Signal extends AbortSignal>(signal: Signal): Signal {
  setMaxListeners(0, signal);
  return signal;
}
