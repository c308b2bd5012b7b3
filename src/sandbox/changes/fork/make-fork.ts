import { isBrigError } from "../../../errors.js";
import { FROM_PATH, MERGED_PATH } from "../../overlay/workspace-tree.js";
import type { CommandContext } from "../../process/start-command.js";
import { isStage } from "../../tree/commit-stage.js";
import { type CopyRecord, copyTree } from "../../tree/tree-copy.js";
import type { FileStamp } from "../../tree/tree-state.js";
import { recordOf } from "../commit/records.js";
import type { LiveChanges } from "../live-changes.js";
import { keyOf } from "../path-key.js";
import type { SeenChange } from "../seen-change.js";
import { DEFAULT_MAX_BYTES, tooLarge } from "../take-snapshot.js";

/** The state of a workspace that is to be forked. */
export interface ParentState {
  changes: SeenChange[];
  /** The time at which the state was read, by the engine's clock. */
  readNs: bigint;
}

/** The state of a new fork. Keys: the path's bytes as latin1. */
export interface NewFork {
  /** The changes that it has taken over from its parent. */
  entries: ReadonlyMap<string, SeenChange>;
  /** The files and links that the fork has at these paths. */
  own: ReadonlyMap<string, FileStamp>;
}

/** Scans the parent's workspace for its changes. Errors: those of a scan. */
export async function readParent(
  changes: LiveChanges,
  signal: AbortSignal | undefined,
): Promise<ParentState> {
  const all: SeenChange[] = [];
  const { startedNs } = await changes.scan({ signal, onChanges: (some) => void all.push(...some) });
  return { changes: all, readNs: startedNs };
}

/**
 * Copies the changes of the parent into a new tree. If commands run in the parent meanwhile, the files may be
 * from different moments; none is longer than when it was scanned. Left out are paths that no longer exist,
 * FIFOs, sockets and devices. Errors: `file.*`; `file.too-large` for more than 10 GiB.
 */
export async function fillFork(
  keeper: CommandContext,
  { changes }: ParentState,
  signal: AbortSignal | undefined,
): Promise<NewFork> {
  const byPath = new Map<string, SeenChange>();
  const records: CopyRecord[] = [];
  for (const change of changes) {
    const record = copyOf(change);
    if (record === null) continue;
    byPath.set(keyOf(change.path), change);
    records.push(record);
  }
  const request = { target: MERGED_PATH, from: FROM_PATH, records, maxBytes: DEFAULT_MAX_BYTES, signal };
  const copied = await copyTree(keeper, request).catch((error: unknown) => {
    throw isBrigError(error, "file.too-large") ? tooLarge(changes, DEFAULT_MAX_BYTES) : error;
  });
  const own = new Map<string, FileStamp>();
  for (const { path, isLeftOut, stamp } of copied) {
    const key = keyOf(path);
    if (isLeftOut) byPath.delete(key);
    if (stamp !== null) own.set(key, stamp);
  }
  return { entries: byPath, own };
}

function copyOf({ path, now }: SeenChange): CopyRecord | null {
  if (isStage(path)) return null;
  const record = recordOf(path, now, { expects: "any", content: 0, isExact: true });
  return (
    record && { ...record, expects: "any", maxBytes: record.action === "put" ? (now?.sizeBytes ?? 0) : 0 }
  );
}
