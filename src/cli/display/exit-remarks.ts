import { formatDuration } from "../../lib/time/durations.js";
import type { ExitStatus } from "../../sandbox/index.js";
import { causeSentences } from "../../sandbox/index.js";

/** The exit code for a missing program, which brig and shells have in common. */
const NOT_FOUND = 127;

/** What brig says of how a command has ended; empty if that is nothing. */
export function exitRemarks(
  { exitCode, timedOut, causes, durationMs, startFailure }: ExitStatus,
  { argv, image }: { argv: readonly string[]; image: string },
): string {
  const remarks = startFailure === null ? causeSentences(causes) : [];
  if (timedOut) remarks.push(`stopped after ${formatDuration(durationMs)}, the limit of --timeout`);
  if (exitCode === NOT_FOUND) remarks.push(notFound(argv, image));
  return remarks.map((one) => `brig: ${one}\n`).join("");
}

/** A single word with spaces in it may be a task for a model, as `codex exec` takes it, or a whole line for a shell. */
function notFound([program = "", ...others]: readonly string[], image: string): string {
  if (others.length === 0 && /\s/.test(program))
    return "this runs one program; for a shell: brig exec -- sh -c 'COMMAND'; to give a model a task: brig run 'TASK'";
  return `a program was not found in the image ${image}; use --container-image NAME for another image`;
}
