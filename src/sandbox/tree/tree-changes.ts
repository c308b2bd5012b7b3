import { createHash } from "node:crypto";
import { BrigError } from "../../errors.js";
import { protocolError } from "../channel/frames.js";
import { CHANGES_RESULT_BYTES, ChangesFlag } from "../channel/protocol.js";
import { run } from "../files/file-request.js";
import type { CommandContext } from "../process/start-command.js";
import { ChangeParser, isPathBelow } from "./change-records.js";
import type { TreeChange } from "./tree-state.js";

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
  /** Also counts the entries of deleted directories. Default: false. */
  countBelow?: boolean;
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
  const { base, merged, upper, leftOut, since = 0n, listSame = false, countBelow = false } = request;
  const parser = new ChangeParser({ countsBelow: countBelow });
  // Pieces of the answer come while earlier ones are still being taken.
  let delivered: Promise<unknown> | undefined;
  let hasFailed = false;
  const running = run(context, {
    operation: "changes",
    path: merged,
    second: pathList([base, upper], leftOut),
    flags: (countBelow ? ChangesFlag.countBelow : 0) | (listSame ? ChangesFlag.listSame : 0),
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
