import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { withFileErrors } from "../../os-error.js";
import type { ToolFiles } from "../../tool-sandbox.js";

/** Small enough for the sandbox to send it together with its answer. */
const FIRST_CHUNK_BYTES = 60 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** The most that one call reads through. */
const MAX_SCANNED_BYTES = 4 * 1024 ** 3;

export interface FileSource {
  files: ToolFiles;
  path: string;
  signal?: AbortSignal | undefined;
}

export interface FileChunk {
  /** The number of zeros before the data that a sparse file does not store. */
  holeBytes: number;
  data: Buffer;
}

/** Reads the file from its start. The first chunk is small, so that reading only a few lines is fast. */
export async function* fileChunks(source: FileSource): AsyncGenerator<FileChunk> {
  const first = await readChunk(source, { offsetBytes: 0, lengthBytes: FIRST_CHUNK_BYTES });
  yield first;
  if (first.data.length === FIRST_CHUNK_BYTES) yield* readAhead(source, endOf(0, first));
}

/** Reads the rest of the file. Requests the next chunk while the caller works on one. */
async function* readAhead({ files, path, signal }: FileSource, start: number): AsyncGenerator<FileChunk> {
  const stop = new AbortController();
  using ends = new AnySignal([signal, stop.signal]);
  const source = { files, path, signal: ends.signal };
  let offsetBytes = start;
  const readNext = () => {
    const chunk = readChunk(source, { offsetBytes, lengthBytes: CHUNK_BYTES });
    // The caller may stop before it gets this chunk.
    chunk.catch(() => undefined);
    return chunk;
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
  const read = () => files.readPastHole(path, { ...range, signal });
  const { holeBytes, data } = await withFileErrors(read, "failed to read file", { path, signal });
  return { holeBytes, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength) };
}

function endOf(offsetBytes: number, { holeBytes, data }: FileChunk): number {
  return offsetBytes + holeBytes + data.length;
}

function tooFar(): BrigError {
  const limit = formatBytes(MAX_SCANNED_BYTES);
  return new BrigError(`failed to read file: the lines asked for are not in the first ${limit} of it`, {
    code: "file.too-large",
    hint: "use a command such as tail or sed",
  });
}
