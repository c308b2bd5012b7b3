import type { Readable, Writable } from "node:stream";
import { NeutralStream } from "../lib/terminal/terminal.js";
import type { CliContext, OutputStream } from "./context.js";
import { write } from "./render.js";

/**
 * Passes a command's output on as it comes: byte for byte to a pipe or file, and to a terminal with its control
 * sequences neutralised. Ends when the output does.
 */
export async function passOutput(
  from: Readable,
  to: OutputStream,
  { environment }: CliContext,
): Promise<void> {
  const shown = to.isTTY === true ? new NeutralStream({ colours: !environment.forbidsColor }) : null;
  for await (const chunk of from) await write(to, shown === null ? chunk : shown.push(chunk));
  if (shown !== null) await write(to, shown.end());
}

/**
 * Passes standard input on to its end. Ends early when the command stops reading; rejects when the input cannot be
 * read. It may wait for input long after the command has gone, so nobody should wait for it.
 */
export async function passInput(from: Readable, to: Writable): Promise<void> {
  to.on("error", () => undefined);
  for await (const chunk of from) {
    if (to.destroyed) return;
    await new Promise<void>((resolve) => {
      to.write(chunk, () => resolve());
    });
  }
  to.end();
}
