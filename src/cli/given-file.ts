import { constants, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { BrigError } from "../errors.js";
import { readStart } from "../lib/bounded-file.js";
import { errnoOf } from "../lib/errno.js";
import { pause } from "../lib/pause.js";

const MAX_BYTES = 64 * 1024 * 1024;
const PIPE_POLL_MS = 5;

/**
 * A file that was named on the command line: a regular one, or a pipe such as a shell's `<(…)` that somebody writes to. An abort ends
 * the wait for a writer. Anything else is `usage.invalid`.
 */
export async function readGivenFile(path: string, signal: AbortSignal): Promise<Buffer> {
  await using file = await openedAtOnce(path);
  const facts = await file.stat();
  if (facts.isFIFO()) return await readPipe(file, path, signal);
  if (!facts.isFile()) throw notReadable(path, `it is ${kindOf(facts)}`);
  const bytes = await readStart(file, MAX_BYTES + 1);
  if (bytes.length > MAX_BYTES) throw tooLarge(path);
  return bytes;
}

/** Without waiting for a FIFO's writer, which may never come. */
async function openedAtOnce(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (cause) {
    const reasons: Record<string, string> = { ENOENT: "no such file", ENXIO: "it is a socket" };
    const errno = errnoOf(cause) ?? String(cause);
    throw notReadable(path, reasons[errno] ?? errno, cause);
  }
}

/** A pipe without a writer is at its end, one whose writer has said nothing yet is not. */
async function readPipe(file: FileHandle, path: string, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    signal.throwIfAborted();
    const chunk = await readSome(file);
    if (chunk === null) {
      await pause(PIPE_POLL_MS, signal);
      continue;
    }
    if (chunk.length === 0) break;
    length += chunk.length;
    if (length > MAX_BYTES) throw tooLarge(path);
    chunks.push(chunk);
  }
  if (length === 0) throw notReadable(path, "it is a pipe with nothing in it that nobody writes to");
  return Buffer.concat(chunks);
}

/** Null when nothing is there yet. */
async function readSome(file: FileHandle): Promise<Buffer | null> {
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024));
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if (errnoOf(error) === "EAGAIN") return null;
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
