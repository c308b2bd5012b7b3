import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { fileFailure } from "../../os-error.js";
import type { ToolFiles } from "../../tool-sandbox.js";

/** What comes back with the answer. */
const FIRST_CHUNK_BYTES = 60 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** What one call goes through at most. The last lines of a larger file are for `tail` or `sed`. */
const MAX_SCANNED_BYTES = 4 * 1024 ** 3;

export interface FileSource {
  files: ToolFiles;
  path: string;
  signal?: AbortSignal | undefined;
}

export interface FileChunk {
  /** Zeros that a sparse file does not store; they come before the data. */
  holeBytes: number;
  data: Buffer;
}

/** The file from its start, in pieces that grow: a short look costs little, and a long one is not held up by round trips. */
export async function* fileChunks(source: FileSource): AsyncGenerator<FileChunk> {
  try {
    const first = await readChunk(source, { offsetBytes: 0, lengthBytes: FIRST_CHUNK_BYTES });
    yield first;
    if (first.data.length === FIRST_CHUNK_BYTES) yield* readAhead(source, endOf(0, first));
  } catch (error) {
    source.signal?.throwIfAborted();
    throw fileFailure("failed to read file", source.path, error);
  }
}

/** Everything after the first piece, the next one being on its way while one is looked at. */
async function* readAhead({ files, path, signal }: FileSource, start: number): AsyncGenerator<FileChunk> {
  const stop = new AbortController();
  using ends = new AnySignal([signal, stop.signal]);
  const source = { files, path, signal: ends.signal };
  let offsetBytes = start;
  const readNext = () => {
    const piece = readChunk(source, { offsetBytes, lengthBytes: CHUNK_BYTES });
    // It is left alone when enough has been seen.
    piece.catch(() => undefined);
    return piece;
  };
  try {
    let next = readNext();
    while (offsetBytes <= MAX_SCANNED_BYTES) {
      const chunk = await next;
      offsetBytes = endOf(offsetBytes, chunk);
      const isLast = chunk.data.length < CHUNK_BYTES;
      if (!isLast) next = readNext();
      yield chunk;
      if (isLast) return;
    }
  } finally {
    stop.abort();
  }
  throw tooFar();
}

async function readChunk(
  { files, path, signal }: FileSource,
  range: { offsetBytes: number; lengthBytes: number },
): Promise<FileChunk> {
  const { holeBytes, data } = await files.readPastHole(path, { ...range, signal });
  return { holeBytes, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength) };
}

function endOf(offsetBytes: number, { holeBytes, data }: FileChunk): number {
  return offsetBytes + holeBytes + data.length;
}

function tooFar(): BrigError {
  return new BrigError(`the lines asked for are not in the first ${formatBytes(MAX_SCANNED_BYTES)} of it`, {
    code: "file.too-large",
    hint: "use a command such as tail or sed",
  });
}
