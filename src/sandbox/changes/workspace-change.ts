import { posix } from "node:path";
import { BrigError } from "../../errors.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { FileType } from "../portable-sandbox.js";
import type { BaseState, TreeChange } from "../tree/tree-changes.js";
import type { OnCopied } from "./copied-changes.js";

/** The state of a path of a workspace. */
export interface FileVersion {
  type: FileType;
  /** Permission bits, e.g. 0o644. */
  mode: number;
  sizeBytes: number;
}

/** One path at which a sandbox's copy-on-write workspace differs from the host's. */
export interface WorkspaceChange {
  /** The path relative to the workspace. Bytes that are not UTF-8 are replaced. */
  path: string;
  /** The path as bytes, since a name need not be UTF-8. */
  pathBytes: Uint8Array;
  /** A directory that was deleted stands for everything that was in it. */
  change: "added" | "modified" | "deleted";
  /** The host's version of the path now; null if nothing is there. */
  before: FileVersion | null;
  /** The sandbox's version of the path; null if nothing is there. */
  after: FileVersion | null;
  /**
   * The change as a patch in git's format, which `git apply` accepts, also for binary files. For a directory that
   * was deleted, the patch deletes each file. Null if no patches were asked for, if a side is too large, if git has no such
   * change, as for an empty directory, a FIFO or a path of a repository's own, or if a binary file has a secret.
   */
  patch: string | null;
  /** Whether the file is binary on either side. False if the contents were not compared. */
  isBinary: boolean;
}

/** Options for comparing a workspace with the host's files. Sizes are in bytes. */
export interface DiffOptions {
  /** Only these paths, and what is below them: relative to the workspace, or absolute. Default: all. */
  paths?: readonly string[] | undefined;
  /** Whether to make patches. Default: true. */
  patches?: boolean | undefined;
  /** A file that is larger than this on either side gets no patch. Default: 1 MiB. */
  maxFileBytes?: number | undefined;
  /** When the patches together exceed this size, the remaining changes get none. Default: 16 MiB. */
  maxPatchBytes?: number | undefined;
  /** Called with each change, in the order of the paths. With it, the list in the result is empty. */
  onChange?: ((change: WorkspaceChange) => void | Promise<void>) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * The changes that a sandbox has made in its workspace. A file that a command removes or replaces meanwhile may be left out.
 */
export interface WorkspaceDiff {
  /** The changes in the order of the paths' bytes. */
  changes: WorkspaceChange[];
  /** The number of changes, also if they were passed to `onChange`. */
  count: number;
  /** The number of changed files that have no patch because of `maxFileBytes` or `maxPatchBytes`. */
  tooLarge: number;
  /** The number of directories that could not be read. The diff does not contain what is in them. */
  notEntered: number;
}

/** Options for applying changes of a sandbox to the host's files. */
export interface ApplyOptions {
  /** Only these paths, and what is below them: relative to the workspace, or absolute. Default: all. */
  paths?: readonly string[] | undefined;
  /** Changes nothing, and says what would be applied. Default: false. */
  dryRun?: boolean | undefined;
  /** An abort has no effect once the host's files begin to change. */
  signal?: AbortSignal | undefined;
  /** Called with how much has been copied to the host, where nothing changes before all of it has. */
  onCopied?: OnCopied | undefined;
}

/** A path of the workspace, and what keeps it from being applied, in a few words. */
export interface PathReason {
  path: string;
  reason: string;
}

/** A path that programs run or obey without being asked to, and who does. */
export interface ObeyedPath {
  path: string;
  obeyedBy: string;
}

/** Options for closing a sandbox. */
export interface CloseOptions {
  /** Called with how much has been stored of what was changed in a copy-on-write workspace, if it is kept. */
  onCopied?: OnCopied | undefined;
}

/** The result of an apply. All paths are relative to the workspace, in the order of their bytes. */
export interface ApplyResult {
  /** The paths that now have the same state on the host as in the sandbox. */
  applied: string[];
  /** The paths that the host has changed, too. If there are any, nothing was written. */
  conflicts: PathReason[];
  /**
   * The changes that are never made on the host: those of protected names, of what git would take for a repository,
   * FIFOs, sockets and devices.
   */
  skipped: PathReason[];
  /** The applied paths that programs run or obey by themselves. Absent if there are none. */
  findings?: ObeyedPath[] | undefined;
}

/** Options for storing the state of a workspace. */
export interface SnapshotOptions {
  /** Letters, digits, `-` and `_`; an earlier snapshot of this name is replaced. Default: a new name. */
  id?: string | undefined;
  /** The most bytes that the changed files may have together. Default: 10 GiB. */
  maxBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Called with how much has been stored. */
  onCopied?: OnCopied | undefined;
}

/**
 * The state of a copy-on-write workspace, stored on the host until it is removed. It contains only what
 * differs from the host's files, without FIFOs, sockets and devices.
 */
export interface Snapshot {
  readonly id: string;
  /** The workspace's directory on the host. */
  readonly workspace: string;
  readonly createdAt: Date;
  remove(): Promise<void>;
}

/** Options for forking a sandbox. */
export interface ForkOptions {
  signal?: AbortSignal | undefined;
  /** Called at each stage of the start, with a few words about it. */
  onProgress?: ((line: string) => void) | undefined;
  /** Called with how much has been copied into the fork. */
  onCopied?: OnCopied | undefined;
}

/** Options of the calls about the changes of a fork. */
export interface ForkPathOptions {
  /** Only these paths, and what is below them: relative to the workspace, or absolute. Default: all. */
  paths?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
}

/** A path that was changed since a fork was made, relative to the workspace. */
export interface ForkChange {
  path: string;
  kind: "add" | "update" | "delete";
}

/** All changes since a fork was made. */
export interface ForkDiff {
  /** The changed files in the order of the paths' bytes. */
  files: ForkChange[];
  /**
   * A patch in git's format, to be read: binary files are only named, directories, links and files of more than 1 MiB
   * are left out, and it ends after about 1 MiB.
   */
  text: string;
}

/** The result of applying a fork's changes to its parent. If there are conflicts, nothing was written. */
export type ForkApplied =
  | { kind: "applied"; files: ForkChange[] }
  | { kind: "conflicts"; conflicts: PathReason[] };

/** The host's state of a path when a sandbox changed it: the base of the sandbox's version. */
export interface HostBase {
  /** Null if the host had nothing there; "unknown" if the host changed it at about the same time. */
  state: BaseState | null | "unknown";
  /** A time at which the sandbox had not yet changed the path, in nanoseconds by the engine's clock. */
  unchangedNs: bigint;
}

/** A change that a sandbox has made, with its base. */
export type SeenChange = Exclude<TreeChange, { change: "same" }> & { base: HostBase };

/** A path that a sandbox has written to, whether it differs from the host's now or not. */
export type TouchedPath = SeenChange | Extract<TreeChange, { change: "same" }>;

export interface ScanOptions {
  signal?: AbortSignal | undefined;
  /** Called with changes in the order of the bytes of their paths. A returned promise pauses the scan. */
  onChanges(changes: readonly SeenChange[]): unknown;
}

export interface ReadLimit {
  /** A larger file fails with `file.too-large`. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/** A path as the key of a map: its bytes as latin1, which is in the order of the bytes, too. */
export function keyOf(path: Buffer): string {
  return path.toString("latin1");
}

/** Whether one of these directories has the path in it, at any depth. All are keys. */
export function isBelowOneOf(path: string, directories: ReadonlySet<string>): boolean {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
    if (directories.has(path.slice(0, end))) return true;
  return false;
}

/** The rest of a path that is below a directory; null for any other path. */
export function relativeTo(directory: Buffer, path: Buffer): Buffer | null {
  const start = Buffer.concat([directory, Buffer.from("/")]);
  return path.subarray(0, start.length).equals(start) ? path.subarray(start.length) : null;
}

const SLASH = 0x2f;

const REPOSITORY = Buffer.from(".git");

/** A choice of the changes of a workspace that count. */
export interface PathChoice {
  /** Only these paths, and what is below them: relative to the workspace, or absolute. Default: all. */
  paths?: readonly string[] | undefined;
  /** Whether the repository of the workspace is left out, since its commits arrive as a branch. */
  withoutRepository: boolean;
}

/** Returns a function that tells whether a path counts. Error: `usage.invalid` for a path outside the workspace. */
export function pathFilter(
  workspace: string,
  { paths, withoutRepository }: PathChoice,
): (path: Buffer) => boolean {
  const wanted = paths?.map((path) => relativePath(workspace, path));
  return (path) =>
    !(withoutRepository && isOfRepository(path)) &&
    (wanted === undefined || wanted.some((one) => isSameOrBelow(path, one)));
}

/** Whether a path belongs to the repository at the top of the workspace. */
export function isOfRepository(path: Buffer): boolean {
  return isSameOrBelow(path, REPOSITORY);
}

function relativePath(workspace: string, path: string): Buffer {
  const absolute = posix.resolve(workspace, path);
  if (isAtOrBelow(absolute, workspace)) return Buffer.from(posix.relative(workspace, absolute));
  throw new BrigError(`${JSON.stringify(path)} is not in the workspace ${workspace}`, {
    code: "usage.invalid",
    hint: "give paths below the workspace, relative to it or absolute",
  });
}

/** The empty path is the workspace itself. */
function isSameOrBelow(path: Buffer, outer: Buffer): boolean {
  if (outer.length === 0) return true;
  if (!path.subarray(0, outer.length).equals(outer)) return false;
  return path.length === outer.length || path[outer.length] === SLASH;
}
