import { createHash } from "node:crypto";
import { BrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import {
  CHANGES_RECORD_BYTES,
  CHANGES_RESULT_BYTES,
  ChangeKind,
  ChangesFlag,
  EntryType,
} from "../channel/protocol.js";
import { fileTypeOf, run } from "../files/file-request.js";
import type { FileType } from "../portable-sandbox.js";
import type { CommandContext } from "../process/command.js";

export interface ScanRequest {
  /**
   * The three directories of an overlay: the one below the tree, the tree itself, and the upper one with what
   * was written.
   */
  base: string;
  merged: string | Uint8Array;
  upper: string | Uint8Array;
  /** Mount points, relative to the tree. They are skipped with everything below them. */
  leftOut: readonly (string | Uint8Array)[];
  /**
   * Changes from before this time are counted, but not reported. A file that a program writes to through a
   * memory mapping gets a new time only when the kernel writes it back. Default: every change is reported.
   */
  since?: bigint | undefined;
  /**
   * Also reports files that were touched but have the same content and mode as before. `leftOutOf` needs
   * them. Default: false.
   */
  listSame?: boolean;
  signal?: AbortSignal | undefined;
  /**
   * Called with changes in the order of the bytes of their paths. A returned promise pauses the scan, and the next call comes when
   * it has resolved. A scan that fails or is aborted ends when that promise has settled, and nothing is called after it.
   */
  onChanges(changes: readonly TreeChange[]): unknown;
}

/** Changes that were counted but not reported. */
export interface LeftOut {
  count: number;
  /** A hash, in hex, of their paths, inode numbers and times; see `leftOutOf`. */
  sha256: string;
}

export interface TreeScan {
  /**
   * Pass it as `since` to the next scan, which then reports everything that has changed after this scan
   * began.
   */
  startedNs: bigint;
  leftOut: LeftOut;
  /**
   * The number of directories that could not be read: no permission, or a path that is too long for the
   * kernel.
   */
  notEntered: number;
}

/**
 * Has the runner compare a copy-on-write tree with the directory below it. A file counts as changed if its
 * content, type or mode differs. Its owner and times do not matter, and the root of the tree is not compared.
 * Errors: `file.*` if a directory is missing or cannot be read, the signal's reason after an abort.
 */
export async function scanChanges(context: CommandContext, request: ScanRequest): Promise<TreeScan> {
  const { base, merged, upper, leftOut, since = 0n, listSame = false } = request;
  const parser = new ChangeParser();
  // Pieces of the answer come while earlier ones are still being taken.
  let delivered: Promise<unknown> | undefined;
  let hasFailed = false;
  const running = run(context, {
    operation: "changes",
    path: merged,
    second: pathList([base, upper], leftOut),
    flags: listSame ? ChangesFlag.listSame : 0,
    offsetBytes: since,
    signal: request.signal,
    onOutput(data) {
      const changes = parser.push(data);
      if (changes.length === 0) return undefined;
      const take = () => (hasFailed ? undefined : request.onChanges(changes));
      const returned = delivered === undefined ? take() : delivered.then(take);
      if (returned instanceof Promise) {
        delivered = returned;
        returned.catch(() => undefined);
      }
      return returned;
    },
  });
  const { result } = await running.catch(async (error: unknown) => {
    hasFailed = true;
    await delivered?.catch(() => undefined);
    throw error;
  });
  await delivered;
  parser.end();
  return parseScan(result, parser.count);
}

function pathList(roots: readonly (string | Uint8Array)[], leftOut: ScanRequest["leftOut"]): Buffer {
  const wrong = leftOut.find((path) => !isPathBelow(Buffer.from(path)));
  if (wrong !== undefined)
    throw new BrigError(`${JSON.stringify(Buffer.from(wrong).toString())} is not a path below a tree`, {
      code: "file.failed",
    });
  return Buffer.concat([...roots, ...leftOut].flatMap((path) => [Buffer.from(path), Buffer.alloc(1)]));
}

function parseScan(result: Buffer, count: number): TreeScan {
  if (result.length !== CHANGES_RESULT_BYTES) throw protocolError("a scan with a result of the wrong size");
  const [written, leftOut, notEntered] = [8, 16, 24].map((at) => Number(result.readBigUInt64LE(at)));
  if (written !== count || !Number.isSafeInteger(leftOut) || !Number.isSafeInteger(notEntered))
    throw protocolError("a scan with an impossible count");
  return {
    startedNs: result.readBigInt64LE(0),
    leftOut: { count: leftOut ?? 0, sha256: result.toString("hex", 32) },
    notEntered: notEntered ?? 0,
  };
}

/**
 * Computes the `leftOut` of a scan that leaves out exactly these changes, given in the order of their paths.
 * If the scan reports another value, a path has vanished or is another file now; only a scan without `since`
 * tells which.
 */
export function leftOutOf(changes: Iterable<Pick<TreeChange, "path" | "now">>): LeftOut {
  const hash = createHash("sha256");
  let count = 0;
  for (const { path, now } of changes) {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(path.length);
    const state = Buffer.alloc(16);
    if (now !== null) {
      state.writeBigUInt64LE(now.ino);
      state.writeBigInt64LE(now.changedNs, 8);
    }
    hash.update(head).update(path).update(state);
    count++;
  }
  return { count, sha256: hash.digest("hex") };
}

/** The kernel's PATH_MAX: a path and the target of a link have fewer bytes than this. */
const PATH_BYTES = 4096;
const NAME_BYTES = 255;
const SLASH = 0x2f;

const kinds = namesByNumber(ChangeKind);

/**
 * Parses the runner's records. A piece of the stream may end in the middle of a record. Error:
 * `protocol.invalid`.
 */
export class ChangeParser {
  #rest: Buffer = Buffer.alloc(0);
  #lastPath: Buffer = Buffer.alloc(0);
  #count = 0;

  /** The number of records so far. */
  get count(): number {
    return this.#count;
  }

  push(data: Buffer): TreeChange[] {
    const bytes = Buffer.concat([this.#rest, data]);
    const changes: TreeChange[] = [];
    let at = 0;
    while (at + CHANGES_RECORD_BYTES <= bytes.length) {
      const end = at + recordBytes(bytes, at);
      if (end > bytes.length) break;
      changes.push(this.#parse(bytes.subarray(at, end)));
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return changes;
  }

  end(): void {
    if (this.#rest.length > 0) throw protocolError("a change that is cut off");
  }

  #parse(record: Buffer): TreeChange {
    const pathEnd = CHANGES_RECORD_BYTES + record.readUInt32LE(4);
    const path = record.subarray(CHANGES_RECORD_BYTES, pathEnd);
    if (!isPathBelow(path)) throw protocolError("a change at an impossible path");
    if (Buffer.compare(this.#lastPath, path) >= 0) throw protocolError("changes that are not in order");
    this.#lastPath = path;
    this.#count++;
    const kind = kinds.get(record.readUInt8(0));
    const now = parseNow(record, record.subarray(pathEnd));
    const before = parseBefore(record);
    // The number of entries below a deleted directory, for which nobody asks.
    if (record.readUInt8(3) !== 0 || record.readBigUInt64LE(112) !== 0n)
      throw protocolError("a change with fields that mean nothing");
    if (kind === "added" && now && !before) return { change: kind, path, now, before };
    if (kind === "deleted" && !now && before) return { change: kind, path, now, before };
    if ((kind === "modified" || kind === "same") && now && before) return { change: kind, path, now, before };
    throw protocolError("a change that is none");
  }
}

function recordBytes(bytes: Buffer, at: number): number {
  const [path, target] = [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8)];
  if (path >= PATH_BYTES || target > PATH_BYTES) throw protocolError("a change with a path that is too long");
  return CHANGES_RECORD_BYTES + path + target;
}

function parseNow(record: Buffer, target: Buffer): PresentState | null {
  const type = parseType(record.readUInt8(1));
  if (target.length > 0 && type !== "symlink")
    throw protocolError("a link target of what is not a symbolic link");
  if (type === null) {
    requireZeros(record.subarray(12, 28));
    requireZeros(record.subarray(32, 72));
    requireZeros(record.subarray(120, CHANGES_RECORD_BYTES));
    return null;
  }
  return {
    ...parseState(record, { type, mode: record.readUInt32LE(12), at: 32 }),
    uid: record.readUInt32LE(16),
    gid: record.readUInt32LE(20),
    links: record.readUInt32LE(24),
    allocatedBytes: safeNumber(record.readBigUInt64LE(120)),
    rdev: record.readBigUInt64LE(64),
    linkTarget: type === "symlink" ? requireWithoutNul(target) : null,
  };
}

function parseBefore(record: Buffer): BaseState | null {
  const type = parseType(record.readUInt8(2));
  if (type === null) {
    requireZeros(record.subarray(28, 32));
    requireZeros(record.subarray(72, 112));
    return null;
  }
  return {
    ...parseState(record, { type, mode: record.readUInt32LE(28), at: 72 }),
    dev: record.readBigUInt64LE(104),
  };
}

function parseType(number: number): FileState["type"] | null {
  if (number === EntryType.unknown) return null;
  const type = fileTypeOf(number);
  if (type === "unknown") throw protocolError(`a change of a file of type ${number}`);
  return type;
}

function parseState(
  record: Buffer,
  { type, mode, at }: { type: FileState["type"]; mode: number; at: number },
): FileState {
  if (mode > 0o7777) throw protocolError("a change with an impossible mode");
  return {
    type,
    mode,
    sizeBytes: safeNumber(record.readBigUInt64LE(at)),
    modifiedNs: record.readBigInt64LE(at + 8),
    changedNs: record.readBigInt64LE(at + 16),
    ino: record.readBigUInt64LE(at + 24),
  };
}

function safeNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw protocolError("a change with an impossible size");
  return Number(value);
}

function requireZeros(bytes: Buffer): void {
  if (bytes.some((byte) => byte !== 0)) throw protocolError("a change with the state of what is not there");
}

function requireWithoutNul(target: Buffer): Buffer {
  if (target.includes(0)) throw protocolError("a link target with a NUL in it");
  return target;
}

/** Whether a relative path stays below its directory: it has no empty name, no "." and no "..". */
export function isPathBelow(path: Uint8Array): boolean {
  if (path.length >= PATH_BYTES || path.includes(0)) return false;
  for (let start = 0; ; ) {
    const slash = path.indexOf(SLASH, start);
    const name = path.subarray(start, slash < 0 ? path.length : slash);
    if (name.length === 0 || name.length > NAME_BYTES) return false;
    if (name.length <= 2 && name.every((byte) => byte === 0x2e)) return false;
    if (slash < 0) return true;
    start = slash + 1;
  }
}

/** The attributes by which brig sees that a file has changed. Times are in nanoseconds since 1970. */
export interface FileState {
  type: FileType;
  /** Permission bits with setuid, setgid and sticky. */
  mode: number;
  sizeBytes: number;
  modifiedNs: bigint;
  changedNs: bigint;
  ino: bigint;
}

/** The state of a path in the changed tree. */
export interface PresentState extends FileState {
  uid: number;
  gid: number;
  /** The number of names the file has. Entries with the same `ino` are names of one file. */
  links: number;
  /** The bytes that a file occupies, as far as they are known: less than its size if it has holes. */
  allocatedBytes?: number | undefined;
  /** The device number of a device file; otherwise 0. */
  rdev: bigint;
  /** Null for everything that is not a symbolic link. May hold any bytes but NUL. */
  linkTarget: Buffer | null;
}

/** The bytes that a file occupies. Holes do not count, nor does the rounding up by the file system. */
export function occupiedBytes(state: PresentState | null): number {
  if (state?.type !== "file") return 0;
  return Math.min(state.sizeBytes, state.allocatedBytes ?? state.sizeBytes);
}

/** Tells whether a file or a symbolic link is the one it was, as it was. */
export type FileStamp = Pick<PresentState, "type" | "ino" | "sizeBytes" | "changedNs">;

/** The state of the path in the directory below the changed tree. */
export interface BaseState extends FileState {
  dev: bigint;
}

/** One path at which the changed tree differs from the one below it. */
export type TreeChange = {
  /**
   * Relative, without "." and "..". It can contain any byte but NUL, so it may not be UTF-8 and may contain
   * line breaks.
   */
  path: Buffer;
} & (
  | { change: "added"; now: PresentState; before: null }
  | { change: "modified"; now: PresentState; before: BaseState }
  /** A deleted directory is one change, without changes for what was in it. */
  | { change: "deleted"; now: null; before: BaseState }
  /** Touched, but with the same content and mode as in the directory below. */
  | { change: "same"; now: PresentState; before: BaseState }
);
