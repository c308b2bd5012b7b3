import { LongWork } from "../lib/terminal/progress.js";
import { formatDuration } from "../lib/time/durations.js";
import type { CliContext } from "./context.js";
import { usesColour } from "./render.js";

/** Shows on stderr what is done and for how long already, once that is more than two seconds, until the result is disposed of. */
export function showWork(context: CliContext, what: string): Disposable {
  const beganAt = performance.now();
  const describe = (now: number) => `${what}, ${formatDuration(Math.round((now - beganAt) / 1000) * 1000)}`;
  return new LongWork(context.stderr, describe, { usesColour: usesColour(context) });
}
