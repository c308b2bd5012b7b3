import { PassThrough, pipeline, type Readable } from "node:stream";
import { BrigError } from "../errors.js";
import type { CliContext } from "./context.js";

/** How much of the input is read while the client leaves its output unread. */
const MAX_AHEAD_BYTES = 1024 * 1024;
/** How often brig checks whether the client still reads. */
const LOOK_MS = 5000;

/**
 * Returns the input for a server that serves one client over standard input and output. A client that no longer
 * reads, and has closed its input or sends even more, is given up: an error of standard output then ends the
 * process, which would otherwise wait for ever to write the rest. A client that only pauses, such as a suspended
 * editor, is waited for.
 */
export function clientInput(
  { stdin, stdout }: Pick<CliContext, "stdin" | "stdout">,
  { lookMs = LOOK_MS }: { lookMs?: number } = {},
): Readable {
  // The end of the input can be seen only after everything before it has been read.
  const input = new PassThrough({ highWaterMark: MAX_AHEAD_BYTES });
  pipeline(stdin, input, () => undefined);
  let unread = 0;
  stdout.on("drain", () => {
    unread = 0;
  });
  const looks = setInterval(() => {
    const hasReadNothing = stdout.writableLength > 0 && stdout.writableLength === unread;
    unread = stdout.writableLength;
    if (!hasReadNothing || !(stdin.readableEnded || input.writableNeedDrain)) return;
    clearInterval(looks);
    stdout.destroy(new BrigError("the client no longer reads it", { code: "aborted" }));
  }, lookMs);
  // The timer is not stopped at the end of the service, because the client may be given up only after that.
  // It does not keep the process alive.
  looks.unref();
  return input;
}
