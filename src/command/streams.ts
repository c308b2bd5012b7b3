import type { Readable, Writable } from "node:stream";
import { BrigError, isBrigError } from "../errors.js";
import { NeutralStream } from "../lib/terminal/terminal.js";
import type { CliContext, InputStream, OutputStream } from "./context.js";
import { say, write } from "./render.js";

export interface InputLimits {
  /** An abort ends the wait for input. */
  signal: AbortSignal;
  maxBytes: number;
  /** The error to throw for more than `maxBytes`. */
  tooLong: () => BrigError;
}

/** Standard input of at most so many bytes. Error: `usage.invalid` if it is longer, or cannot be read. */
export async function readInput(
  stdin: InputStream,
  { signal, maxBytes, tooLong }: InputLimits,
): Promise<Buffer> {
  signal.throwIfAborted();
  const stop = () => stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLong();
      chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw isBrigError(error) ? error : unreadableInput(error);
  } finally {
    signal.removeEventListener("abort", stop);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks);
}

/** The error for a read that failed. Neither brig nor a command may take the failure for the end of the input. */
export function unreadableInput(cause: unknown): BrigError {
  return new BrigError(`standard input cannot be read: ${cause instanceof Error ? cause.message : cause}`, {
    code: "usage.invalid",
    cause,
  });
}

const NOTE_MS = 1000;
const HINT_MS = 4000;

/**
 * Prints what brig is waiting for, because a pipe that nobody closes never ends. `awaited` completes the
 * sentence "brig is …"; `hint` says how the wait ends.
 */
export function noteWait(
  stderr: OutputStream,
  { awaited, hint }: { awaited: string; hint: string },
): Disposable {
  const timers = [
    setTimeout(() => void say(stderr, `brig: ${awaited}\n`), NOTE_MS),
    setTimeout(() => void say(stderr, `brig: still ${awaited}; ${hint}\n`), HINT_MS),
  ];
  return {
    [Symbol.dispose]() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** The hint for a wait for the end of standard input. */
export const ENDS_WITH_INPUT = "it goes on when its standard input is closed, as </dev/null does";

/**
 * Copies a command's output as it arrives, until it ends: byte for byte to a pipe or file, and to a terminal
 * with control sequences neutralised.
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
 * Copies standard input until it ends or the command stops reading. Rejects when the input cannot be read. Do
 * not await it together with the command: it may go on waiting for input long after the command has ended.
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
