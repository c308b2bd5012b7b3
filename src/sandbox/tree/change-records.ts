import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import { CHANGES_RECORD_BYTES, ChangeKind, EntryType } from "../channel/protocol.js";
import { fileTypeOf } from "../files/file-request.js";
import type { BaseState, FileState, PresentState, TreeChange } from "./tree-state.js";

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
  readonly #countsBelow: boolean;
  #rest: Buffer = Buffer.alloc(0);
  #lastPath: Buffer = Buffer.alloc(0);
  #count = 0;

  constructor({ countsBelow }: { countsBelow: boolean }) {
    this.#countsBelow = countsBelow;
  }

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
    const below = record.readBigUInt64LE(112);
    if (record.readUInt8(3) !== 0 || (below !== 0n && before?.type !== "directory"))
      throw protocolError("a change with fields that mean nothing");
    if (kind === "added" && now && !before) return { change: kind, path, now, before };
    if (kind === "deleted" && !now && before)
      return { change: kind, path, now, before, entriesBelow: this.#entriesBelow(before, below) };
    if ((kind === "modified" || kind === "same") && now && before) return { change: kind, path, now, before };
    throw protocolError("a change that is none");
  }

  #entriesBelow({ type }: BaseState, below: bigint): number | null {
    return this.#countsBelow && type === "directory" ? safeNumber(below) : null;
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
