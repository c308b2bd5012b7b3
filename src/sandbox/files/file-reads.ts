import type { BrigError } from "../../errors.js";
import { protocolError } from "../channel/frames.js";
import { INLINE_BYTES, READ_RESULT_BYTES, ReadFlag } from "../channel/protocol.js";
import type { CommandContext } from "../process/command.js";
import type { FilePart, PathOptions, ReadOptions } from "../sandbox-types.js";
import { type ContentPiece, ExtentParser, run, tooLarge } from "./file-request.js";
import { outputPieces } from "./file-streams.js";

const DEFAULT_MAX_BYTES = 256 * 1024 * 1024;

export async function readFile(
  context: CommandContext,
  path: string | Uint8Array,
  options: ReadOptions,
): Promise<Buffer> {
  const { offsetBytes = 0, lengthBytes, refuseSymlinks, signal } = options;
  if (lengthBytes === undefined) return await readWhole(context, path, { ...options, offsetBytes });
  return (await readPart(context, path, { offsetBytes, lengthBytes, refuseSymlinks, signal })).data;
}

interface Part extends PathOptions {
  offsetBytes: number;
  lengthBytes: number;
  flags?: number;
}

/** Works like `readFile` of a part, but a read that would begin in a hole of a sparse file begins after the hole. */
export async function readPastHole(context: CommandContext, path: string, part: Part): Promise<FilePart> {
  return await readPart(context, path, { ...part, flags: ReadFlag.skipHole });
}

async function readPart(
  context: CommandContext,
  path: string | Uint8Array,
  { offsetBytes, lengthBytes, flags = 0, refuseSymlinks, signal }: Part,
): Promise<FilePart> {
  if (lengthBytes === 0) {
    await run(context, { operation: "stat", path, refuseSymlinks, signal });
    return { holeBytes: 0, data: Buffer.alloc(0) };
  }
  const request = { path, offsetBytes, lengthBytes, flags, refuseSymlinks, signal };
  const { start, data } =
    lengthBytes > INLINE_BYTES ? await readStream(context, request) : await readInline(context, request);
  return { holeBytes: start - offsetBytes, data };
}

/** Reads a longer file again from the start: by the second request it may be another file. */
async function readWhole(
  context: CommandContext,
  path: string | Uint8Array,
  {
    offsetBytes,
    maxBytes = DEFAULT_MAX_BYTES,
    refuseSymlinks,
    signal,
  }: ReadOptions & { offsetBytes: number },
): Promise<Buffer> {
  const request = { path, offsetBytes, flags: 0, refuseSymlinks, signal };
  const first = await readInline(context, { ...request, lengthBytes: INLINE_BYTES });
  const { data } =
    first.data.length < INLINE_BYTES
      ? first
      : // The runner refuses a file whose reported size is too large at once. Others show it by one byte too many.
        await readStream(context, { ...request, flags: ReadFlag.allOrNone, lengthBytes: maxBytes + 1 });
  if (data.length <= maxBytes) return data;
  throw tooLarge(path);
}

type ReadRequest = Part & { path: string | Uint8Array; flags: number };

async function readInline(context: CommandContext, request: ReadRequest) {
  const flags = request.flags | ReadFlag.inline;
  const { result } = await run(context, { ...request, operation: "read", flags });
  const data = result.subarray(READ_RESULT_BYTES);
  if (data.length > request.lengthBytes) throw longerThanAsked();
  return { start: startOf(result, request), data };
}

async function readStream(context: CommandContext, request: ReadRequest) {
  const pieces: Buffer[] = [];
  let left = request.lengthBytes;
  const { result } = await run(context, {
    ...request,
    operation: "read",
    onOutput(data) {
      left -= data.length;
      if (left < 0) throw longerThanAsked();
      pieces.push(Buffer.from(data));
    },
  });
  const data = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  return { start: startOf(result, request), data };
}

function longerThanAsked(): BrigError {
  return protocolError("more of a file than was asked for");
}

/** The offset of the data, which is after the hole if the read was to skip one. */
function startOf(result: Buffer, { offsetBytes, flags }: ReadRequest): number {
  const start = result.length < READ_RESULT_BYTES ? -1 : Number(result.readBigUInt64LE(8));
  const isPossible = flags & ReadFlag.skipHole ? start >= offsetBytes : start === offsetBytes;
  if (!isPossible || !Number.isSafeInteger(start)) throw protocolError("a read that began elsewhere");
  return start;
}

/**
 * Reads the first bytes of a regular file in pieces, without its holes, at the pace of its reader. It ends there even
 * if somebody goes on writing to the file. A symbolic link in the path is an error. Errors: those of `outputPieces`.
 */
export async function* fileContent(
  context: CommandContext,
  path: string | Uint8Array,
  { lengthBytes, signal }: { lengthBytes: number; signal?: AbortSignal | undefined },
): AsyncGenerator<ContentPiece> {
  const parser = new ExtentParser();
  const request = { path, flags: ReadFlag.extents, lengthBytes, refuseSymlinks: true, signal };
  for await (const bytes of outputPieces(context, { operation: "read", ...request }))
    yield* parser.push(bytes);
  parser.end();
}
