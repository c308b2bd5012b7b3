import { BrigError, isBrigError } from "../../errors.js";
import { keyOf } from "../changes/path-key.js";
import type { ContentPiece } from "../files/extents.js";
import { statFile } from "../files/files.js";
import { BASE_PATH, below, MERGED_PATH } from "../overlay/workspace-tree.js";
import type { FileStat } from "../sandbox-types.js";
import type { EarlierBase } from "../snapshots/snapshot-state.js";
import type { StoredSnapshot } from "../snapshots/snapshot-store.js";
import type { BaseState, PresentState } from "../tree/tree-state.js";
import { hostContent, hostDirectory } from "./host-directory.js";
import type { TreeNow, Wanted } from "./wanted.js";

type BaseRequest = TreeNow & { snapshot: StoredSnapshot };

/**
 * The entries to write so that a path gets the state that the host had before the sandbox first changed it. Empty
 * if it has that state. For a directory that was deleted, this includes everything that the host has in it.
 * Error: `workspace.conflict`.
 */
export async function wantedBase(earlier: EarlierBase, now: BaseRequest): Promise<Wanted[]> {
  const { path, state: base, baseSha256 } = earlier;
  if (base === null) return wantedNothing(path, now);
  const host = await statIn(BASE_PATH, path, now);
  if (base.type === "directory") return await wantedDirectory(earlier, { base, host, now });
  const isHosts = host !== null && isStill(base, host);
  if (isHosts && isHostsOwn(keyOf(path), now)) return [];
  const state = await presentState(earlier, base, now);
  if (base.type === "file" && baseSha256 !== null)
    return [{ path, now: state, content: async () => now.snapshot.contents.read(baseSha256) }];
  if (base.type === "file" && isHosts)
    return [{ path, now: state, content: async () => await hostContent(state, path, now) }];
  if (base.type === "symlink" && state.linkTarget !== null) return [{ path, now: state, content: null }];
  // FIFOs, sockets and devices cannot be restored.
  if (base.type !== "file" && base.type !== "symlink") return [];
  throw notKept(path);
}

/** Whether the tree has at the path what the host has: neither the path nor a directory above it was replaced. */
function isHostsOwn(key: string, { state }: TreeNow): boolean {
  if (state.has(key)) return false;
  for (let end = key.lastIndexOf("/"); end > 0; end = key.lastIndexOf("/", end - 1)) {
    const above = state.get(key.slice(0, end));
    if (above !== undefined && above.change.now?.type !== "directory") return false;
  }
  return true;
}

/** The entries for a path that neither the host nor the sandbox had. */
function wantedNothing(path: Buffer, { state, touched, isFresh }: BaseRequest): Wanted[] {
  const key = keyOf(path);
  const isThere = state.get(key)?.change.now != null || touched.get(key)?.now != null;
  return isThere || isFresh ? [{ path, now: null, content: null }] : [];
}

async function wantedDirectory(
  { path, owner }: EarlierBase,
  { base, host, now }: { base: BaseState; host: FileStat | null; now: BaseRequest },
): Promise<Wanted[]> {
  const there = await statIn(MERGED_PATH, path, now);
  if (there?.type === "directory" && there.mode === base.mode) return [];
  if (there?.type !== "directory" && host?.type !== "directory") throw notKept(path);
  const { uid, gid } = owner ?? there ?? host ?? { uid: 0, gid: 0 };
  const state: PresentState = { ...base, uid, gid, links: 1, rdev: 0n, linkTarget: null };
  const directory: Wanted = { path, now: state, content: null };
  return there?.type === "directory" ? [directory] : [directory, ...(await hostDirectory(path, now))];
}

async function presentState(
  { path, owner, baseSha256 }: EarlierBase,
  base: BaseState,
  { snapshot, ...now }: BaseRequest,
): Promise<PresentState> {
  const { uid, gid } =
    owner ??
    (await statIn(BASE_PATH, path, now)) ??
    (await statIn(MERGED_PATH, Buffer.alloc(0), now)) ??
    root;
  const isLink = base.type === "symlink" && baseSha256 !== null;
  const linkTarget = isLink ? await whole(snapshot.contents.read(baseSha256)) : null;
  return { ...base, uid, gid, links: 1, rdev: 0n, linkTarget };
}

const root = { uid: 0, gid: 0 };

/** The target of a link, which is short and has no holes. */
async function whole(pieces: AsyncIterable<ContentPiece>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const { data } of pieces) all.push(data);
  return Buffer.concat(all);
}

/** Looks at a path below one of the keeper's directories; null if nothing is there. */
export async function statIn(
  directory: string,
  path: Buffer,
  { tree, signal }: Pick<TreeNow, "tree" | "signal">,
): Promise<FileStat | null> {
  const keeper = await tree.keeper();
  try {
    const options = { followSymlinks: false, refuseSymlinks: true, signal };
    return await statFile(keeper, below(directory, path), options);
  } catch (error) {
    if (nothingThere.some((code) => isBrigError(error, code))) return null;
    throw error;
  }
}

const nothingThere = ["file.not-found", "file.not-directory", "file.symlink"] as const;

/** Whether the host has the same file as then, unchanged. */
function isStill(base: BaseState, host: FileStat): boolean {
  return (
    base.type === host.type &&
    base.mode === host.mode &&
    base.sizeBytes === host.sizeBytes &&
    base.ino === host.ino &&
    base.dev === host.dev &&
    Number(base.modifiedNs) / 1e6 === host.modifiedMs
  );
}

export function notKept(path: Buffer): BrigError {
  const name = JSON.stringify(path.toString());
  return new BrigError(
    `that state cannot be made again: ${name} has been changed on the host since, and its content was not kept`,
    {
      code: "workspace.conflict",
      hint: "files of more than 16 MiB and deleted directories are not kept; put it back on the host, and try again",
    },
  );
}
