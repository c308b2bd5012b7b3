import { runQuickly } from "./quick-exec.js";

/** The launcher calls this in place of the program for a command in a sandbox that is open. */
export function start(otherwise: () => void): void {
  runQuickly(process, otherwise);
}
