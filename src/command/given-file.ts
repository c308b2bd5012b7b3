import { closeSync, constants, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Socket } from "node:net";
import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BrigError, invalidUsage } from "../errors.js";
import { readStart } from "../lib/bounded-file.js";
import { errnoOf } from "../lib/errno.js";
import { visibleLine } from "../lib/terminal/visible-line.js";
import { decodeMarked } from "../lib/utf8.js";
import type { OutputStream } from "./context.js";
import { noteWait } from "./streams.js";

const MAX_BYTES = 64 * 1024 * 1024;
/** How long to wait for a writer: one that was blocked until the pipe had a reader is only now woken. */
const WRITER_COMES_MS = 2000;
/** O_NONBLOCK, since opening a FIFO would otherwise wait for a writer that may never come. */
const OPENING = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

export interface WaitNotes {
  /** The stream on which brig says that it waits for a pipe. Default: none. */
  stderr?: OutputStream | undefined;
}

/** Reads a regular file, or a pipe such as a shell's `<(…)`. Errors: `usage.invalid`, the signal's reason. */
export async function readGivenFile(
  path: string,
  signal: AbortSignal,
  notes: WaitNotes = {},
): Promise<Buffer> {
  await using file = await openedAtOnce(path);
  const facts = await file.stat();
  if (facts.isFIFO()) {
    const hint = "it goes on when the pipe's writer closes it";
    using _ =
      notes.stderr && noteWait(notes.stderr, { awaited: `reading the pipe ${visibleLine(path)}`, hint });
    return await readPipe(path, signal);
  }
  if (!facts.isFile()) throw notReadable(path, `it is ${kindOf(facts)}`);
  const bytes = await readStart(file, MAX_BYTES + 1);
  if (bytes.length > MAX_BYTES) throw tooLarge(path);
  return bytes;
}

/** The text of a file or of standard input. Error: `usage.invalid`. */
export function decodeGiven(bytes: Uint8Array, name: string): string {
  try {
    return decodeMarked(bytes);
  } catch (cause) {
    throw new BrigError(`${name} is not text in UTF-8 or UTF-16`, { code: "usage.invalid", cause });
  }
}

async function openedAtOnce(path: string): Promise<FileHandle> {
  try {
    return await open(path, OPENING);
  } catch (cause) {
    const reasons: Record<string, string> = { ENOENT: "no such file", ENXIO: "it is a socket" };
    const errno = errnoOf(cause) ?? String(cause);
    throw notReadable(path, reasons[errno] ?? errno, cause);
  }
}

async function readPipe(path: string, signal: AbortSignal): Promise<Buffer> {
  const fd = openSync(path, OPENING);
  const chunks = await startOfPipe(fd, signal).catch((error: unknown) => {
    closeSync(fd);
    throw error;
  });
  if (chunks === null) {
    closeSync(fd);
    throw notReadable(path, "it is an empty pipe without a writer");
  }
  let length = chunks[0]?.length ?? 0;
  // A socket reports when data arrives; a file would have to be polled. The socket closes the descriptor.
  const pipe = addAbortSignal(signal, new Socket({ fd, readable: true, writable: false }));
  try {
    for await (const chunk of pipe as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_BYTES) throw tooLarge(path);
      chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  if (length === 0) throw notReadable(path, "it is a pipe, and its writer wrote nothing");
  return Buffer.concat(chunks);
}

/**
 * The first data in the pipe, or null if no writer comes. An event loop does not report a pipe without a writer,
 * so this polls. Closing the descriptor meanwhile could lose the data of a writer that has just come, and kill it.
 */
async function startOfPipe(fd: number, signal: AbortSignal): Promise<Buffer[] | null> {
  const deadline = performance.now() + WRITER_COMES_MS;
  for (;;) {
    const start = readAvailable(fd);
    if (start !== null || performance.now() > deadline) return start;
    await sleep(5, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** Null if nobody has the pipe open for writing; empty if the writer has not written yet. */
function readAvailable(fd: number): Buffer[] | null {
  const buffer = Buffer.alloc(64 * 1024);
  try {
    const bytesRead = readSync(fd, buffer);
    return bytesRead === 0 ? null : [buffer.subarray(0, bytesRead)];
  } catch (error) {
    if (errnoOf(error) === "EAGAIN") return [];
    throw error;
  }
}

function kindOf(facts: Stats): string {
  if (facts.isDirectory()) return "a directory";
  return facts.isSocket() ? "a socket" : "a device";
}

function notReadable(path: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${path} cannot be read: ${reason}`, { code: "usage.invalid", cause });
}

function tooLarge(path: string): BrigError {
  return invalidUsage(`${path} is larger than ${MAX_BYTES} bytes`);
}
