import { protocolError } from "../channel/frames.js";
import { COPY_RESULT_BYTES, COPY_STATE_BYTES, CopyOutcome } from "../channel/protocol.js";
import { type FileRequest, fileError, perform } from "../files/file-request.js";
import { listDirectory, statFile } from "../files/files.js";
import type { CommandContext } from "../process/command.js";
import type { ExitRecord } from "../process/exit-record.js";
import type { FileStamp } from "./tree-changes.js";
import { encodeRecord, isStage, lookOften, sortRecords, type TreeRecord } from "./tree-commit.js";

/** A change to copy. The content of a "put" is that of the same path in the other tree, up to `maxBytes`. */
export type CopyRecord = TreeRecord & { expects: "any"; maxBytes?: number };

export interface CopyRequest {
  /** The directory to change. Nobody else may use it meanwhile, and after a failure it is of no use. */
  target: string;
  /** The other tree, which may change meanwhile. */
  from: string;
  records: readonly CopyRecord[];
  /** The most bytes to copy. Holes in files do not count. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
  /** Called with paths that are done, some 2000 at a time. */
  onDone?: ((paths: readonly Buffer[]) => void) | undefined;
  /** Called every while with how far the copy of a large file is, from 0 to 1. No other file is copied meanwhile. */
  onReached?: ((path: Buffer, share: number) => void) | undefined;
}

export interface CopiedPath {
  path: Buffer;
  /** The other tree no longer has a regular file there, so nothing was done. */
  isLeftOut: boolean;
  /** The stamp of a file or a symbolic link. A later change gives it another one. */
  stamp: FileStamp | null;
}

/** The runner takes no request of more than 4 MiB. */
const BATCH_BYTES = 1024 * 1024;
/** The runner says rarely what is done of a request, and at its end. A larger file has a request of its own. */
const BATCH_CONTENT_BYTES = 128 * 1024 * 1024;
const NO_RECORD = 0xffff_ffff;

type SortedRecord = CopyRecord & { path: Buffer };

/**
 * Makes all these paths as they are in another tree of the same engine, without the contents passing through
 * this process. What is there already is replaced. Returns the paths in the order of their bytes. Errors:
 * `file.*`; `file.too-large` for more bytes than allowed.
 */
export async function copyTree(context: CommandContext, request: CopyRequest): Promise<CopiedPath[]> {
  const batches = inBatches(sortRecords(request.records));
  const copied: CopiedPath[] = [];
  let leftBytes = request.maxBytes;
  const copy = async (batch: readonly SortedRecord[], onDone = request.onDone) => {
    const { paths, bytes } = await copyBatch(context, batch, { ...request, onDone, maxBytes: leftBytes });
    leftBytes -= bytes;
    return paths;
  };
  for (const batch of batches) copied.push(...(await copy(batch)));
  if (batches.length <= 1) return copied;
  // Paths of a later batch have changed the times of directories of an earlier one.
  for (const batch of batches)
    await copy(
      batch.filter(({ action }) => action === "mkdir"),
      () => undefined,
    );
  return copied;
}

function inBatches(records: readonly SortedRecord[]): SortedRecord[][] {
  const batches: SortedRecord[][] = [];
  let [bytes, contentBytes] = [BATCH_BYTES, 0];
  for (const record of records) {
    const size = encodeRecord(record).length;
    const { maxBytes = 0 } = record;
    const isFull = bytes + size > BATCH_BYTES || contentBytes > BATCH_CONTENT_BYTES;
    if (isFull || maxBytes > BATCH_CONTENT_BYTES) {
      batches.push([]);
      [bytes, contentBytes] = [0, 0];
    }
    batches.at(-1)?.push(record);
    bytes += size;
    contentBytes += maxBytes;
  }
  return batches;
}

async function copyBatch(
  context: CommandContext,
  batch: readonly SortedRecord[],
  { target, from, maxBytes, signal, onDone, onReached }: CopyRequest,
): Promise<{ paths: CopiedPath[]; bytes: number }> {
  signal?.throwIfAborted();
  if (batch.length === 0) return { paths: [], bytes: 0 };
  const states: Buffer[] = [];
  const second = Buffer.concat([Buffer.from(`${from}\0`), ...batch.map(encodeCopy)]);
  let [stateBytes, done] = [0, 0];
  const onOutput = (data: Buffer) => {
    states.push(Buffer.from(data));
    stateBytes += data.length;
    const now = Math.floor(stateBytes / COPY_STATE_BYTES);
    onDone?.(batch.slice(done, now).map(({ path }) => path));
    done = now;
  };
  const file: FileRequest = {
    operation: "copy",
    path: target,
    second,
    lengthBytes: maxBytes,
    signal,
    onOutput,
  };
  await using _ = followCopy(context, batch, { target, onReached });
  const record = await perform(context, file);
  signal?.throwIfAborted();
  const { bytes, failed } = parseResult(record, { records: batch.length, maxBytes });
  if (record.kind !== "file" || record.errno !== 0) {
    const path = failed === null ? undefined : batch[failed]?.path;
    throw fileError({ ...file, path: path === undefined ? target : `${target}/${path.toString()}` }, record);
  }
  const all = Buffer.concat(states);
  if (all.length !== batch.length * COPY_STATE_BYTES)
    throw protocolError("a copy with too few or too many states");
  return { paths: batch.map((one, index) => parseState(all.subarray(index * COPY_STATE_BYTES), one)), bytes };
}

/** Directories with such names may be left of earlier copies. No more of them are looked into. */
const MAX_STAGES = 10;

/** Looks until this is disposed of how far the copy of a large file is. */
function followCopy(
  context: CommandContext,
  [first]: readonly SortedRecord[],
  { target, onReached }: Pick<CopyRequest, "target" | "onReached">,
): AsyncDisposable | null {
  const { path = Buffer.alloc(0), maxBytes = 0 } = first ?? {};
  if (onReached === undefined || maxBytes <= BATCH_CONTENT_BYTES) return null;
  let stages: string[] = [];
  return lookOften(async (signal) => {
    if (stages.length !== 1) stages = await stagesIn(context, target, signal);
    for (const stage of stages) {
      const options = { followSymlinks: false, refuseSymlinks: true, signal };
      const found = await statFile(context, `${target}/${stage}/new`, options).catch(() => null);
      if (found === null) continue;
      stages = [stage];
      if (!signal.aborted) onReached(path, Math.min(1, found.sizeBytes / maxBytes));
    }
  });
}

async function stagesIn(context: CommandContext, target: string, signal: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  await listDirectory(context, target, {
    signal,
    onEntries(entries) {
      const stages = entries.filter(({ nameBytes }) => isStage(nameBytes)).map(({ name }) => name);
      found.push(...stages.slice(0, MAX_STAGES - found.length));
    },
  });
  return found;
}

/** A copy says how many bytes it takes in the field in which a commit says which size it expects. */
function encodeCopy(record: SortedRecord): Buffer {
  const encoded = encodeRecord(record);
  encoded.writeBigUInt64LE(BigInt(record.maxBytes ?? 0), 48);
  return encoded;
}

function parseResult(
  { kind, result }: ExitRecord,
  { records, maxBytes }: { records: number; maxBytes: number },
): { bytes: number; failed: number | null } {
  if (kind !== "file" || result.length === 0) return { bytes: 0, failed: null };
  if (result.length !== COPY_RESULT_BYTES) throw protocolError("a copy with a result of the wrong size");
  const [bytes, failed] = [Number(result.readBigUInt64LE(0)), result.readUInt32LE(8)];
  if (bytes > maxBytes || (failed >= records && failed !== NO_RECORD) || result.readUInt32LE(12) !== 0)
    throw protocolError("a copy with an impossible result");
  return { bytes, failed: failed === NO_RECORD ? null : failed };
}

function parseState(state: Buffer, { path, action }: SortedRecord): CopiedPath {
  const outcome = state.readUInt8(0);
  const isLeftOut = outcome === CopyOutcome.leftOut;
  const sizeBytes = Number(state.readBigUInt64LE(16));
  if (
    (!isLeftOut && outcome !== CopyOutcome.done) ||
    (isLeftOut && action !== "put") ||
    !Number.isSafeInteger(sizeBytes)
  )
    throw protocolError("a copy with an impossible state");
  const type = action === "put" ? "file" : action === "symlink" ? "symlink" : null;
  if (type === null || isLeftOut) return { path, isLeftOut, stamp: null };
  const [ino, changedNs] = [state.readBigUInt64LE(8), state.readBigInt64LE(24)];
  return { path, isLeftOut, stamp: { type, ino, sizeBytes, changedNs } };
}
