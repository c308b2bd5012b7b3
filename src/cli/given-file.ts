import { closeSync, constants, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Socket } from "node:net";
import { addAbortSignal } from "node:stream";
import { BrigError } from "../errors.js";
import { readStart } from "../lib/bounded-file.js";
import { errnoOf } from "../lib/errno.js";

const MAX_BYTES = 64 * 1024 * 1024;
/** Without waiting for a FIFO's writer, which may never come. */
const OPENING = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * A file that was named on the command line: a regular one, or a pipe such as a shell's `<(…)` that somebody writes to. An abort ends
 * the wait for a writer. Anything else is `usage.invalid`.
 */
export async function readGivenFile(path: string, signal: AbortSignal): Promise<Buffer> {
  await using file = await openedAtOnce(path);
  const facts = await file.stat();
  if (facts.isFIFO()) return await readPipe(path, signal);
  if (!facts.isFile()) throw notReadable(path, `it is ${kindOf(facts)}`);
  const bytes = await readStart(file, MAX_BYTES + 1);
  if (bytes.length > MAX_BYTES) throw tooLarge(path);
  return bytes;
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
  const chunks = startOfPipe(fd);
  if (chunks === null) {
    closeSync(fd);
    throw notReadable(path, "it is a pipe with nothing in it that nobody writes to");
  }
  let length = chunks[0]?.length ?? 0;
  // As a socket, since a file would have to be asked again and again. It closes its descriptor itself.
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
  if (length === 0) throw notReadable(path, "it is a pipe and nothing was written to it");
  return Buffer.concat(chunks);
}

/** Null where nobody writes: of that an event loop would hear nothing. Empty where the writer has said nothing yet. */
function startOfPipe(fd: number): Buffer[] | null {
  const buffer = Buffer.alloc(64 * 1024);
  try {
    const bytesRead = readSync(fd, buffer);
    return bytesRead === 0 ? null : [buffer.subarray(0, bytesRead)];
  } catch (error) {
    if (errnoOf(error) === "EAGAIN") return [];
    closeSync(fd);
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
  return new BrigError(`${path} has more than ${MAX_BYTES} bytes`, { code: "usage.invalid" });
}
