import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { fileFailure } from "../os-error.js";
import type { ToolFiles } from "../sandbox.js";

const FIRST_CHUNK_BYTES = 64 * 1024;
const LARGEST_CHUNK_BYTES = 1024 * 1024;
/** What one call goes through at most. The last lines of a larger file are for `tail` or `sed`. */
export const MAX_SCANNED_BYTES = 4 * 1024 ** 3;

export interface FileSource {
  files: ToolFiles;
  path: string;
  signal?: AbortSignal | undefined;
}

/** The file from its start, in pieces that grow: a short look costs little, and a long one is not held up by round trips. */
export async function* fileChunks({ files, path, signal }: FileSource): AsyncGenerator<Buffer> {
  const stop = new AbortController();
  const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  let offsetBytes = 0;
  let lengthBytes = FIRST_CHUNK_BYTES;
  const readNext = () => {
    const piece = files.read(path, { offsetBytes, lengthBytes, signal: either });
    // It may fail while nobody waits for it, or be left when enough has been seen.
    piece.catch(() => undefined);
    return piece;
  };
  try {
    let next = readNext();
    while (true) {
      const chunk = asBuffer(await next);
      const isLast = chunk.length < lengthBytes;
      offsetBytes += chunk.length;
      if (offsetBytes > MAX_SCANNED_BYTES) throw tooFar();
      const isFirst = lengthBytes === FIRST_CHUNK_BYTES;
      lengthBytes = LARGEST_CHUNK_BYTES;
      // Most looks end within the first piece, so only then is the next one asked for ahead of time.
      if (!isLast && !isFirst) next = readNext();
      yield chunk;
      if (isLast) return;
      if (isFirst) next = readNext();
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw fileFailure("failed to read file", path, error);
  } finally {
    stop.abort();
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function tooFar(): BrigError {
  return new BrigError(`the lines asked for are not in the first ${formatBytes(MAX_SCANNED_BYTES)} of it`, {
    code: "file.too-large",
    hint: "use a command such as tail or sed",
  });
}
