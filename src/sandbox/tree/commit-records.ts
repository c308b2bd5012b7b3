import { BrigError } from "../../errors.js";
import { COMMIT_RECORD_BYTES, CommitAction, EntryType, ExpectKind } from "../channel/protocol.js";
import type { FileType } from "../sandbox-types.js";
import { isPathBelow } from "./change-records.js";
import type { FileState } from "./tree-state.js";

/**
 * The state that a path must have for the commit to go ahead. This keeps a commit from overwriting a change that its
 * caller does not know of.
 */
export type Expected =
  | "any"
  | "absent"
  /**
   * For a directory, only the type and the inode number are compared, since the rest changes with every name
   * in it.
   */
  | Pick<FileState, "type" | "ino" | "sizeBytes" | "modifiedNs" | "changedNs">
  /**
   * Not changed after this time. If a directory is to be removed or replaced, everything below it is checked
   * as well.
   */
  | { notSinceNs: bigint; type: FileType };

interface Given {
  /** Default: the user that the runner runs as. */
  owner?: { uid: number; gid: number };
  /** Default: now. An existing directory keeps its time. */
  modifiedNs?: bigint;
}

/** One path that a commit changes, relative to its target. */
export type TreeRecord = { path: string | Uint8Array; expects: Expected } & (
  | /** Installs a file of the stage. */ ({ action: "put"; content: number; mode: number } & Given)
  | /** A directory that is there already gets the mode. */ ({ action: "mkdir"; mode: number } & Given)
  | ({ action: "symlink"; linkTarget: Uint8Array } & Given)
  | /** With all that is below. Nothing to do if it is not there. */ { action: "remove" }
  | /** Changes nothing. */ { action: "check" }
);

/** Stand for an owner or a time that the runner must not change. */
const SAME_OWNER = 0xffff_ffff;
const SAME_TIME = -(1n << 63n);
const PATH_BYTES = 4096;

/**
 * Sorts records by the bytes of their paths, as the runner expects them. Error: `file.failed` for a path that
 * is invalid or occurs twice.
 */
export function sortRecords<R extends TreeRecord>(records: readonly R[]): (R & { path: Buffer })[] {
  const sorted = records.map((record) => ({ ...record, path: Buffer.from(record.path) }));
  sorted.sort((one, other) => Buffer.compare(one.path, other.path));
  for (const [index, { path }] of sorted.entries()) {
    if (!isPathBelow(path)) throw badRecord(path, "is not a path below the target of a commit");
    if (index > 0 && sorted[index - 1]?.path.equals(path)) throw badRecord(path, "is twice in one commit");
  }
  return sorted;
}

export function encodeRecord(record: TreeRecord & { path: Buffer }): Buffer {
  const { action, path, expects } = record;
  const head = Buffer.alloc(COMMIT_RECORD_BYTES);
  const target = action === "symlink" ? Buffer.from(record.linkTarget) : Buffer.alloc(0);
  if (action === "symlink" && (target.length === 0 || target.length >= PATH_BYTES || target.includes(0)))
    throw badRecord(path, "cannot become a symbolic link: no such target can exist");
  head.writeUInt8(CommitAction[action], 0);
  head.writeUInt32LE(action === "put" ? record.content : 0, 4);
  head.writeUInt32LE(action === "put" || action === "mkdir" ? record.mode : 0, 8);
  head.writeUInt32LE(path.length, 20);
  head.writeUInt32LE(target.length, 24);
  const given: Given = action === "remove" || action === "check" ? {} : record;
  head.writeUInt32LE(given.owner?.uid ?? SAME_OWNER, 12);
  head.writeUInt32LE(given.owner?.gid ?? SAME_OWNER, 16);
  head.writeBigInt64LE(given.modifiedNs ?? SAME_TIME, 32);
  writeExpected(head, expects);
  return Buffer.concat([head, path, target]);
}

function writeExpected(head: Buffer, expects: Expected): void {
  if (typeof expects === "string") {
    head.writeUInt8(ExpectKind[expects], 1);
    return;
  }
  head.writeUInt8(EntryType[expects.type], 2);
  if ("notSinceNs" in expects) {
    head.writeUInt8(ExpectKind.older, 1);
    head.writeBigInt64LE(expects.notSinceNs, 64);
    return;
  }
  head.writeUInt8(ExpectKind.state, 1);
  head.writeBigUInt64LE(expects.ino, 40);
  head.writeBigUInt64LE(BigInt(expects.sizeBytes), 48);
  head.writeBigInt64LE(expects.modifiedNs, 56);
  head.writeBigInt64LE(expects.changedNs, 64);
}

function badRecord(path: Buffer, what: string): BrigError {
  return new BrigError(`${JSON.stringify(path.toString())} ${what}`, { code: "file.failed" });
}
