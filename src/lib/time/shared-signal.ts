import { setMaxListeners } from "node:events";

/**
 * The same signal, told that many may listen to it at a time: every request and every call that is under way does. Node would take more
 * than ten for a leak and print a warning into whatever is on the terminal.
 */
export function sharedSignal<Signal extends AbortSignal>(signal: Signal): Signal {
  setMaxListeners(0, signal);
  return signal;
}
