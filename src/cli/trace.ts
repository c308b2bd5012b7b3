import { onStep } from "../lib/steps.js";
import { environmentProblem } from "./check-home.js";
import type { Host } from "./host.js";
import { write } from "./render.js";

/** With `BRIG_TRACE=1`, prints on stderr at the end how many milliseconds each step of this process took. */
export function openTrace(host: Pick<Host, "environment" | "stderr">): { print(): Promise<void> } {
  const { BRIG_TRACE: wanted = "0" } = environmentProblem(host) === null ? host.environment.variables : {};
  if (wanted === "0") return { print: async () => undefined };
  const lines: string[] = [];
  let before = 0;
  onStep(({ name, atMs }) => {
    lines.push(
      `brig: ${atMs.toFixed(1).padStart(8)} ms ${`+${(atMs - before).toFixed(1)}`.padStart(8)}  ${name}\n`,
    );
    before = atMs;
  });
  return { print: async () => await write(host.stderr, lines.join("")) };
}
