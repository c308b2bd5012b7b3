import { randomBytes } from "node:crypto";
import { BrigError, isBrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { pause } from "../../lib/time/pause.js";
import { protocolError } from "../channel/frames.js";
import {
  COMMIT_CONFLICT_BYTES,
  COMMIT_CONFLICTS_MAX,
  COMMIT_KEY_BYTES,
  COMMIT_RECORD_BYTES,
  COMMIT_RESULT_BYTES,
  CommitAction,
  CommitFlag,
  ConflictReason,
  EntryType,
  ExpectKind,
} from "../channel/protocol.js";
import { type FileRequest, fileError, perform, run } from "../files/file-request.js";
import { statFile } from "../files/files.js";
import type { FileType } from "../portable-sandbox.js";
import type { CommandContext } from "../process/command.js";
import type { ExitRecord } from "../process/exit-record.js";
import { type FileState, isPathBelow } from "./tree-changes.js";

/**
 * "exists", "missing", "type", "changed": the path is not in the expected state; "parent": its directory is
 * missing, or can only be reached through a symbolic link; "mount": it is on another file system; "reserved":
 * its name is one of those under which brig keeps new files until a commit moves them into place.
 */
export type ConflictReasonName = keyof typeof ConflictReason;

interface TreeConflict {
  path: Buffer;
  reason: ConflictReasonName;
}

export type CommitResult =
  | { committed: true }
  /** Nothing was written. `omitted` is the number of further conflicts that are not listed. */
  | { committed: false; conflicts: TreeConflict[]; omitted: number };

export interface CommitRequest {
  /** The directory to change. */
  target: string;
  /** The stage with the contents to put. It is removed whether or not the commit succeeds. */
  stage: CommitStage;
  records: readonly TreeRecord[];
  /** An abort has no effect once the runner has begun. */
  signal?: AbortSignal | undefined;
  /** Called several times a second with how many of the files are in their final places. It may be more. */
  onPlaced?: ((contents: number) => void) | undefined;
}

interface Outcome {
  flags: number;
  done: number;
  failed: number | null;
  conflicts: { index: number; reason: ConflictReasonName }[];
  omitted: number;
}

const NO_RECORD = 0xffff_ffff;
const reasons = namesByNumber(ConflictReason);

/**
 * Checks that every path is in the expected state, and then changes all of them or none. The runner finishes
 * even if this process dies. Errors: `file.*` with nothing changed; `sandbox.gone` if the container died, and
 * then `recoverTree` undoes what was done.
 */
export async function commitTree(context: CommandContext, request: CommitRequest): Promise<CommitResult> {
  const { target, stage, signal } = request;
  const records = sortRecords(request.records);
  const input = Buffer.concat(records.map(encodeRecord));
  signal?.throwIfAborted();
  if (records.length === 0) {
    await recoverTree(context, { target, stage });
    return { committed: true };
  }
  const second = stageOf(stage);
  const file: FileRequest = { operation: "commit", path: target, second, lengthBytes: input.length, input };
  await using _ = followCommit(context, { ...request, records });
  const record = await perform(context, file);
  const outcome = parseOutcome(record, records.length);
  const failed = outcome.failed === null ? undefined : records[outcome.failed];
  const path = failed === undefined ? target : `${target}/${failed.path.toString()}`;
  if ((outcome.flags & CommitFlag.torn) !== 0) throw torn(target, stage);
  if (outcome.conflicts.length > 0)
    return {
      committed: false,
      conflicts: outcome.conflicts.map(({ index, reason }) => ({
        path: records[index]?.path ?? Buffer.alloc(0),
        reason,
      })),
      omitted: outcome.omitted,
    };
  if (record.kind !== "file" || record.errno !== 0) throw commitError({ ...file, path }, record);
  return { committed: true };
}

/** How often to look how far the runner is. */
const LOOK_MS = 250;

/**
 * Looks every while how far a request is, of which the runner says that only at its end, until this is disposed of. Whether that can be seen
 * matters to nobody: the request itself says why it has failed.
 */
export function lookOften(look: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const over = new AbortController();
  const looking = async () => {
    while (!over.signal.aborted) {
      await pause(LOOK_MS, over.signal);
      await look(over.signal);
    }
  };
  const looked = looking().catch(() => undefined);
  return {
    async [Symbol.asyncDispose]() {
      over.abort();
      await looked;
    },
  };
}

/** The runner goes through the records in their order, so what it has done is found by looking at a few of them. */
function followCommit(
  context: CommandContext,
  { target, stage, records, onPlaced }: CommitRequest,
): AsyncDisposable | null {
  if (onPlaced === undefined) return null;
  const puts = records.filter((record) => record.action === "put");
  let placed = 0;
  return lookOften(async (signal) => {
    let [low, high] = [placed, puts.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const put = puts[middle];
      if (put !== undefined && (await isPlaced(context, put, { target, stage, signal }))) low = middle + 1;
      else high = middle;
    }
    placed = low;
    if (!signal.aborted) onPlaced(placed);
  });
}

/** Whether the content has left the stage, or what it has replaced is there in its place. */
async function isPlaced(
  context: CommandContext,
  { content, expects }: Extract<TreeRecord, { action: "put" }>,
  { signal, ...place }: Pick<CommitRequest, "target" | "stage" | "signal">,
): Promise<boolean> {
  const options = { followSymlinks: false, refuseSymlinks: true, signal };
  const staged = await statFile(context, stagedPath(place, content), options).catch((error: unknown) => {
    if (isBrigError(error, "file.not-found")) return null;
    throw error;
  });
  return staged === null || (typeof expects === "object" && "ino" in expects && staged.ino === expects.ino);
}

/**
 * Undoes a commit whose container died before the end, and removes its stage. Does nothing if there is no
 * stage. Errors: `file.*`, also if the journal in the stage was not written with this key.
 */
export async function recoverTree(
  context: CommandContext,
  { target, stage }: { target: string; stage: CommitStage },
): Promise<{ undone: number }> {
  const file: FileRequest = { operation: "recover", path: target, second: stageOf(stage) };
  const record = await perform(context, file);
  const { flags, done } = parseOutcome(record, NO_RECORD);
  if ((flags & CommitFlag.torn) !== 0) throw torn(target, stage);
  if (record.kind !== "file" || record.errno !== 0) throw commitError(file, record);
  return { undone: done };
}

const failures: Readonly<Record<string, { text: string; hint: string }>> = {
  EAGAIN: {
    text: "another program holds the lock of the directory",
    hint: "wait until the other commit is done, and try again",
  },
  EBADF: { text: "its content is not in the stage", hint: "fill another stage, and try again" },
  EBADMSG: {
    text: "the notes in the stage are not by the commit that made it",
    hint: "look at what is in the stage, and remove it by hand",
  },
};

function commitError(request: FileRequest, record: ExitRecord): BrigError {
  const error = fileError(request, record);
  const known = failures[error.errno ?? ""];
  if (known === undefined) return error;
  const { code, errno } = error;
  return new BrigError(`cannot ${request.operation} ${request.path}: ${known.text}`, {
    code,
    errno,
    hint: known.hint,
    cause: error,
  });
}

function torn(target: string, { name }: CommitStage): BrigError {
  return new BrigError(
    `files below ${target} changed while a commit was undone, and could not all be put back`,
    {
      code: "file.failed",
      hint: `what was there before is in ${target}/${name}`,
    },
  );
}

function parseOutcome({ result, kind }: ExitRecord, records: number): Outcome {
  if (kind !== "file" || result.length === 0)
    return { flags: 0, done: 0, failed: null, conflicts: [], omitted: 0 };
  const listed = result.length - COMMIT_RESULT_BYTES;
  if (listed < 0) throw protocolError("a commit with a result of the wrong size");
  const [flags = 0, done = 0, failed = 0, count = 0] = [0, 4, 8, 12].map((at) => result.readUInt32LE(at));
  if (listed !== Math.min(count, COMMIT_CONFLICTS_MAX) * COMMIT_CONFLICT_BYTES || count > records)
    throw protocolError("a commit with an impossible number of conflicts");
  if (flags > (CommitFlag.stageLeft | CommitFlag.torn) || (failed >= records && failed !== NO_RECORD))
    throw protocolError("a commit with an impossible result");
  const conflicts: Outcome["conflicts"] = [];
  for (let at = COMMIT_RESULT_BYTES; at < result.length; at += COMMIT_CONFLICT_BYTES) {
    const [index, reason] = [result.readUInt32LE(at), reasons.get(result.readUInt32LE(at + 4))];
    if (index >= records || index <= (conflicts.at(-1)?.index ?? -1) || reason === undefined)
      throw protocolError("a conflict of what was not asked for");
    conflicts.push({ index, reason });
  }
  return {
    flags,
    done,
    failed: failed === NO_RECORD ? null : failed,
    conflicts,
    omitted: count - conflicts.length,
  };
}

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

/**
 * The stage of a commit is a directory in the target, whose name begins like this. No commit changes a path
 * with such a name.
 */
const STAGE_PREFIX = ".brig-stage-";

/**
 * The directory for the new contents of a commit, and for what it replaces. Store both fields on disk before
 * the commit: `recoverTree` needs them after a crash.
 */
export interface CommitStage {
  name: string;
  /** Authenticates the journal that the commit keeps in its stage, so that no other process can forge one. */
  key: Buffer;
}

/**
 * Whether a path below a target begins with the name of a stage. A command may have made a directory with
 * such a name.
 */
export function isStage(path: Uint8Array): boolean {
  return Buffer.from(path).toString("latin1").startsWith(STAGE_PREFIX);
}

export function newStage(): CommitStage {
  return { name: `${STAGE_PREFIX}${randomBytes(8).toString("hex")}`, key: randomBytes(COMMIT_KEY_BYTES) };
}

/** Makes the stage's directory. Errors: `file.*`. */
export async function makeStage(
  context: CommandContext,
  { target, stage, signal }: { target: string; stage: CommitStage; signal?: AbortSignal | undefined },
): Promise<void> {
  const path = `${target}/${stage.name}`;
  await run(context, { operation: "mkdir", path, mode: 0o700, refuseSymlinks: true, signal });
}

/**
 * The path for the content of a "put" with this number. Write it there, with the ordinary file operations,
 * before the commit.
 */
export function stagedPath(
  { target, stage }: { target: string; stage: CommitStage },
  content: number,
): string {
  return `${target}/${stage.name}/${content}`;
}

function stageOf({ name, key }: CommitStage): Buffer {
  return Buffer.concat([key, Buffer.from(name)]);
}
