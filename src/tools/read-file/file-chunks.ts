import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { fileFailure } from "../os-error.js";
import type { ToolFiles } from "../sandbox.js";

const FIRST_CHUNK_BYTES = 64 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** What one call goes through at most. The last lines of a larger file are for `tail` or `sed`. */
const MAX_SCANNED_BYTES = 4 * 1024 ** 3;

export interface FileSource {
  files: ToolFiles;
  path: string;
  signal?: AbortSignal | undefined;
}

/** The file from its start, in pieces that grow: a short look costs little, and a long one is not held up by round trips. */
export async function* fileChunks(source: FileSource): AsyncGenerator<Buffer> {
  try {
    const first = await readChunk(source, { offsetBytes: 0, lengthBytes: FIRST_CHUNK_BYTES });
    yield first;
    if (first.length === FIRST_CHUNK_BYTES) yield* readAhead(source);
  } catch (error) {
    source.signal?.throwIfAborted();
    throw fileFailure("failed to read file", source.path, error);
  }
}

/** Everything after the first piece, the next one being on its way while one is looked at. */
async function* readAhead({ files, path, signal }: FileSource): AsyncGenerator<Buffer> {
  const stop = new AbortController();
  const source = { files, path, signal: signal ? AbortSignal.any([signal, stop.signal]) : stop.signal };
  let offsetBytes = FIRST_CHUNK_BYTES;
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
      offsetBytes += chunk.length;
      const isLast = chunk.length < CHUNK_BYTES;
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
): Promise<Buffer> {
  return asBuffer(await files.read(path, { ...range, signal }));
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
