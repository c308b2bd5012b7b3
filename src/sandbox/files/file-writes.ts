import { protocolError } from "../channel/frames.js";
import { INLINE_BYTES, SEQUENCE_RESULT_BYTES, WriteFlag } from "../channel/protocol.js";
import { lengthPrefixed } from "../process/spawn-request.js";
import type { CommandContext } from "../process/start-command.js";
import type { FileWrite, PathOptions, WritesDone } from "../sandbox-types.js";
import { type ContentPiece, encodeExtents } from "./extents.js";
import { checkedPath, encodeFileRequest, type FileRequest, fileError, perform, run } from "./file-request.js";

const MAX_SEQUENCE_BYTES = 1024 * 1024;
const MAX_CHARACTER_BYTES = 4;

export async function writeFile(context: CommandContext, file: FileWrite & PathOptions): Promise<void> {
  await run(context, { ...writeRequest(file, file), signal: file.signal });
}

/** Works like `writeFile`, for a content of any size that comes in pieces. Its holes stay holes. */
export async function writeContent(
  context: CommandContext,
  {
    path,
    content,
    mode,
    signal,
  }: { path: string; content: AsyncIterable<ContentPiece>; mode: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const input = encodeExtents(content);
  const flags = WriteFlag.extents;
  await run(context, { operation: "write", path, flags, mode, refuseSymlinks: true, input, signal });
}

function writeRequest({ path, data, mode = 0o644 }: FileWrite, { refuseSymlinks }: PathOptions): FileRequest {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  const content = bytes.length > INLINE_BYTES ? { input: bytes } : { second: bytes, flags: WriteFlag.inline };
  return { operation: "write", path, mode, refuseSymlinks, ...content };
}

export async function writeEach(
  context: CommandContext,
  files: readonly FileWrite[],
  options: PathOptions,
): Promise<WritesDone> {
  for (const { path } of files) checkedPath(path);
  let written = 0;
  for (const requests of groupShortWrites(files.map((file) => writeRequest(file, options)))) {
    const done = await writeInOrder(context, requests, options.signal);
    written += done.written;
    if (done.failure !== null) return { written, failure: done.failure };
  }
  return { written, failure: null };
}

function* groupShortWrites(requests: readonly FileRequest[]): Generator<FileRequest[]> {
  let sequence: FileRequest[] = [];
  let bytes = 0;
  for (const request of requests) {
    const length = (request.second?.length ?? MAX_SEQUENCE_BYTES) + request.path.length * MAX_CHARACTER_BYTES;
    if (sequence.length > 0 && bytes + length > MAX_SEQUENCE_BYTES) {
      yield sequence;
      sequence = [];
      bytes = 0;
    }
    sequence.push(request);
    bytes += length;
  }
  if (sequence.length > 0) yield sequence;
}

async function writeInOrder(
  context: CommandContext,
  requests: readonly FileRequest[],
  signal: AbortSignal | undefined,
): Promise<WritesDone> {
  const [only] = requests;
  if (only && requests.length === 1)
    return await run(context, { ...only, signal }).then(
      () => ({ written: 1, failure: null }),
      (failure: unknown) => ({ written: 0, failure }),
    );
  if (signal?.aborted) return { written: 0, failure: signal.reason };
  const second = Buffer.concat(requests.map((request) => lengthPrefixed(encodeFileRequest(request))));
  const record = await perform(context, { operation: "sequence", path: "/", second, signal });
  const written = record.result.length === SEQUENCE_RESULT_BYTES ? record.result.readUInt32LE(0) : 0;
  const failed = requests[written];
  const isDone = record.kind === "file" && record.errno === 0;
  if (isDone !== (written === requests.length))
    throw protocolError(`${written} of ${requests.length} writes`);
  if (failed === undefined) return { written, failure: null };
  return { written, failure: signal?.aborted ? signal.reason : fileError(failed, record) };
}
