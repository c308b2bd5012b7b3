import { isBrigError } from "../../errors.js";
import { FROM_PATH, MERGED_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import type { CommandContext } from "../process/command.js";
import { type BaseState, type FileStamp, occupiedBytes, type PresentState } from "../tree/tree-changes.js";
import { isStage } from "../tree/tree-commit.js";
import { type CopyRecord, copyTree } from "../tree/tree-copy.js";
import { recordOf } from "./commit.js";
import { CopyCount } from "./copied-changes.js";
import type { LiveChanges } from "./live-changes.js";
import { DEFAULT_MAX_BYTES, sizesOfFiles, tooLarge } from "./take-snapshot.js";
import {
  type ForkOptions,
  type ForkPathOptions,
  isBelowOneOf,
  keyOf,
  pathFilter,
  type SeenChange,
  type TouchedPath,
} from "./workspace-change.js";

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
  { signal, onCopied }: Pick<ForkOptions, "signal" | "onCopied">,
): Promise<NewFork> {
  const byPath = new Map<string, SeenChange>();
  const records: CopyRecord[] = [];
  for (const change of changes) {
    const record = copyOf(change);
    if (record === null) continue;
    byPath.set(keyOf(change.path), change);
    records.push(record);
  }
  const count = new CopyCount(onCopied);
  count.expect(sizesOfFiles([...byPath.values()]));
  const request = {
    ...{ target: MERGED_PATH, from: FROM_PATH, records, maxBytes: DEFAULT_MAX_BYTES, signal },
    onDone(paths: readonly Buffer[]) {
      const done = paths.flatMap((path) => byPath.get(keyOf(path)) ?? []);
      count.add(sizesOfFiles(done));
    },
    onReached:
      onCopied &&
      ((path: Buffer, share: number) => {
        const sizeBytes = occupiedBytes(byPath.get(keyOf(path))?.now ?? null);
        count.reach(Math.floor(share * sizeBytes));
      }),
  };
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

/** The state of the parent's workspace, and of the fork, when the fork was made. */
interface ForkPoint extends NewFork {
  parent: WorkspaceTree;
  parentChanges: LiveChanges;
  /** The time at which the parent's state was read, by the engine's clock. */
  parentNs: bigint;
}

/** A forked workspace. */
export interface Fork {
  tree: WorkspaceTree;
  changes: LiveChanges;
  point: ForkPoint;
  /** Whether its repository is no part of its changes, since its commits arrive as a branch of their own. */
  withoutRepository: boolean;
}

const SLASH = 0x2f;
/** The longest target of a symbolic link. */
const MAX_TARGET_BYTES = 4096;

/** The state of a path; null if nothing is there, undefined if it is the host's. */
export type StateOf = (path: Buffer) => PresentState | null | undefined;

/** All changes since the fork was made, in the order of the paths. */
export async function changesSinceFork(
  { changes, point, withoutRepository }: Fork,
  { paths, signal }: ForkPathOptions,
): Promise<SeenChange[]> {
  const isAsked = pathFilter(changes.workspace, { paths, withoutRepository });
  const atFork = stateAtFork(point);
  const touched = new Map<string, TouchedPath>();
  const { startedNs } = await changes.scanTouched({
    since: undefined,
    signal,
    onChanges(some) {
      for (const change of some) touched.set(keyOf(change.path), change);
    },
  });
  changes.sawAll({ startedNs });
  const since = new Map<string, SeenChange>();
  for (const [key, change] of touched) {
    // A path that the parent had removed, and that the fork has made again as on the host, is new to the parent.
    const isNew = change.change === "same" && !point.entries.has(key) && atFork(change.path) === null;
    if (isNew) since.set(key, { ...change, change: "modified", base: hostBase(change.before) });
    else if (change.change !== "same" && isSinceFork(change, point, atFork)) since.set(key, change);
  }
  const statesOfTouched = [...touched].map(([key, { now }]) => [key, now] as const);
  const withoutInFork = withoutEntries(statesOfTouched);
  for (const [key, entry] of point.entries) {
    const isReverted = !touched.has(key) || touched.get(key)?.change === "same";
    if (isReverted && !isBelowOneOf(key, withoutInFork))
      since.set(key, await revertOf(entry, { changes, signal }));
  }
  await addDirectories(since, { changes, atFork, signal });
  const without = withoutEntries([
    ...statesOfTouched,
    ...[...since].map(([key, { now }]) => [key, now] as const),
  ]);
  return [...since.values()]
    .filter(({ path }) => isAsked(path) && !isStage(path) && !isBelowOneOf(keyOf(path), without))
    .sort((one, other) => Buffer.compare(one.path, other.path));
}

/** The state of each path in the parent when the fork was made. */
export function stateAtFork({ entries }: Pick<ForkPoint, "entries">): StateOf {
  return statesOf(new Map([...entries].map(([key, { now }]) => [key, now])));
}

/** Takes the states of all paths that differ from the host's. What is below a removed directory is gone too. */
export function statesOf(different: ReadonlyMap<string, PresentState | null>): StateOf {
  const without = withoutEntries(different);
  return (path) => {
    const key = keyOf(path);
    const state = different.get(key);
    return state === undefined && isBelowOneOf(key, without) ? null : state;
  };
}

/** Whether two states of a path are the same. Undefined stands for the state that the host has. */
export function isSameState(now: FileStamp | null | undefined, then: FileStamp | null | undefined): boolean {
  if (now == null || then == null) return now === then;
  if (now.type === "directory") return then.type === "directory";
  return now.ino === then.ino && now.changedNs === then.changedNs && now.sizeBytes === then.sizeBytes;
}

/** The paths below which nothing can be: those that are not there, and those that are not directories. */
function withoutEntries(states: Iterable<readonly [string, Pick<PresentState, "type"> | null]>): Set<string> {
  const found = new Set<string>();
  for (const [key, state] of states) if (state?.type !== "directory") found.add(key);
  return found;
}

function isSinceFork({ path, now }: SeenChange, { entries, own }: ForkPoint, atFork: StateOf): boolean {
  if (now === null) return atFork(path) !== null;
  const then = entries.get(keyOf(path))?.now;
  // Only the mode of a directory is compared, because its times change with every name in it.
  if (now.type === "directory") return then?.type !== "directory" || then.mode !== now.mode;
  return !isSameState(now, own.get(keyOf(path)));
}

/**
 * Adds the directories that the parent had removed and the fork has made again: a scan does not report those
 * that have the same mode as on the host.
 */
async function addDirectories(
  since: Map<string, SeenChange>,
  { changes, atFork, signal }: { changes: LiveChanges; atFork: StateOf; signal: AbortSignal | undefined },
): Promise<void> {
  const add = async (directory: Buffer) => {
    const state = await changes.directoryState(directory, signal);
    const before = { ...state, dev: 0n };
    const added = { change: "modified", now: state, before, base: hostBase(before) } as const;
    since.set(keyOf(directory), { path: directory, ...added });
  };
  for (const { path, now } of [...since.values()]) {
    if (now === null) continue;
    for (let end = path.lastIndexOf(SLASH); end > 0; end = path.lastIndexOf(SLASH, end - 1)) {
      const above = path.subarray(0, end);
      if (since.has(keyOf(above)) || atFork(above) !== null) break;
      await add(above);
    }
  }
  // A map also visits what is added to it meanwhile.
  for (const { path, now, before } of since.values()) {
    const then = atFork(path);
    if (now?.type !== "directory" || before === null || then === undefined || then?.type === "directory")
      continue;
    for (const below of await changes.subdirectories(path, signal))
      if (!since.has(keyOf(below))) await add(below);
  }
}

/** The base for a path that the fork has as the host has it. */
function hostBase(state: BaseState): SeenChange["base"] {
  return { state, unchangedNs: state.changedNs };
}

/** The change for a path that the parent had changed, and the fork has made the same as the host's again. */
async function revertOf(
  entry: SeenChange,
  { changes, signal }: { changes: LiveChanges; signal: AbortSignal | undefined },
): Promise<SeenChange> {
  const { path, base, before, now } = entry;
  if (before === null) {
    const state = { ...now, dev: 0n } as BaseState;
    return { path, base, change: "deleted", now: null, before: state };
  }
  const { uid, gid } = now ?? { uid: 0xffff_ffff, gid: 0xffff_ffff };
  const isLink = before.type === "symlink";
  const linkTarget = isLink ? await changes.readHost(entry, { maxBytes: MAX_TARGET_BYTES, signal }) : null;
  return {
    path,
    base,
    change: "modified",
    now: { ...before, uid, gid, links: 1, rdev: 0n, linkTarget },
    before,
  };
}
