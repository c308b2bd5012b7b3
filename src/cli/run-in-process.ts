import type { Interruption } from "../command/index.js";
import { describeError, flush, say, write } from "../command/index.js";
import { onStep, step } from "../lib/steps.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { environmentProblem } from "./check-home.js";
import type { Host } from "./host.js";

/** Runs a program and waits until all its output is written. Resolves to the exit status of the process. */
export async function runInProcess(host: Host, run: () => Promise<number | null>): Promise<number> {
  const trace = openTrace(host);
  step("the command line program is loaded");
  const failure = await run();
  step("everything is closed");
  await host.finish();
  const cut = await flushUntilInterrupted(host);
  const lost = host.outputFailure();
  if (failure === null && lost?.isQuiet === false)
    await say(host.essentialStderr, describeError(lost.error, { showsCauses: false }));
  await trace.print();
  await flush(host.essentialStderr);
  return failure ?? lost?.exitStatus ?? cut?.exitStatus ?? host.exitStatus();
}

/**
 * Waits for the reader of standard output. After an interruption nobody wants to wait for one that has stopped
 * reading. Resolves to the interruption that ended the wait; null if none did.
 */
async function flushUntilInterrupted(host: Host): Promise<Interruption | null> {
  if (host.interruption() !== null) return null;
  await beforeAbort(flush(host.stdout), host.signal).catch(() => undefined);
  return host.interruption();
}

/** With `BRIG_TRACE=1`, prints on stderr at the end how many milliseconds each step of this process took. */
function openTrace(host: Pick<Host, "environment" | "essentialStderr">): { print(): Promise<void> } {
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
  return { print: async () => await write(host.essentialStderr, lines.join("")) };
}
