import { step } from "../lib/steps.js";
import { describeError } from "./display/error-text.js";
import type { Host } from "./host.js";
import { flush, say } from "./render.js";
import { openTrace } from "./trace.js";

/** Runs a program and waits until all its output is written. Resolves to the exit status of the process. */
export async function runInProcess(host: Host, run: () => Promise<number | null>): Promise<number> {
  const trace = openTrace(host);
  step("the command line program is loaded");
  const failure = await run();
  step("everything is closed");
  // After an interruption nobody wants to wait for a reader that has stopped reading.
  if (host.interruption() === null) await flush(host.stdout);
  const lost = host.outputFailure();
  if (failure === null && lost?.isQuiet === false)
    await say(host.stderr, describeError(lost.error, { showsCauses: false }));
  await trace.print();
  await flush(host.stderr);
  return failure ?? lost?.exitStatus ?? host.exitStatus();
}
