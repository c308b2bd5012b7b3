import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { BrigError } from "../../errors.js";
import { type BytePath, fromBytePath, lstatOrNull, readSmallFile, toBytePath } from "../git/byte-paths.js";
import { parseAlternates } from "../git/git-directory.js";
import { type IndexedFile, parseGitIndex } from "../git/git-index.js";
import { type GitSetting, parseGitConfig } from "../git/repository-config.js";
import { directoriesAbove, isAtOrBelow } from "../plan/paths.js";

/** The repository that git uses in a workspace, which a sandbox would not see all of by itself. */
export interface OutsideRepository {
  /** The directory with the `.git` by which git finds it: the workspace, or one above. */
  top: string;
  /** The files and directories outside that git needs. None is inside of another one. */
  paths: readonly string[];
  /** The git directories among them, and those in the workspace. */
  gitDirectories: readonly string[];
}

export interface Surroundings {
  workspace: string;
  /** The directories that the sandbox sees anyway. */
  visible: readonly string[];
  /** The users whose files are trusted: the ids of the user who runs brig, and of the workspace's owner. */
  owners: readonly number[];
}

const POINTER_MAX_BYTES = 64 * 1024;

/**
 * Null without a repository, or if all of it is visible. Follows no link and runs nothing. Error: `workspace.invalid` for a
 * repository that cannot be shown.
 *
 * The workspace's own claims prove nothing. So a directory that its `.git` names has to be a git directory that names
 * this workspace as its work tree; and it must belong to one of the `owners`, since others could have made it.
 */
export function findRepository(surroundings: Surroundings): OutsideRepository | null {
  const { workspace } = surroundings;
  const device = reachable(workspace)?.dev;
  for (const top of [workspace, ...directoriesAbove(workspace)]) {
    // Git goes no further than its file system.
    if (reachable(top)?.dev !== device) return null;
    const dotGit = join(top, ".git");
    const stat = reachable(dotGit);
    if (stat?.isSymbolicLink()) return linked(dotGit, surroundings);
    if (stat?.isFile()) return shown(gitDirectoryOf(dotGit), { top, dotGit, surroundings });
    if (stat?.isDirectory() && isGitDirectory(dotGit)) return shown(dotGit, { top, dotGit, surroundings });
  }
  return null;
}

interface Place {
  top: string;
  dotGit: string;
  surroundings: Surroundings;
}

function shown(directory: string, place: Place): OutsideRepository | null {
  const { top, dotGit, surroundings } = place;
  const isVisible = (path: string) => surroundings.visible.some((root) => isAtOrBelow(path, root));
  const common = commonDirectory(directory);
  const gitDirectories = [...new Set([common, directory])];
  const needed = [dotGit, common, directory].filter((path) => !isVisible(path));
  if (needed.length === 0) return gitDirectories.some(borrows) ? { top, paths: [], gitDirectories } : null;
  if (!isAtOrBelow(surroundings.workspace, workTreeOf(directory, place))) return null;
  for (const path of [...needed, ...gitDirectories]) requireOwn(path, surroundings);
  requireParts(directory, common);
  const paths = needed.filter((path) => !needed.some((outer) => outer !== path && isAtOrBelow(path, outer)));
  return { top, paths: [...new Set(paths)], gitDirectories };
}

/** The work tree that a git directory says it has. Error: `workspace.invalid` unless it is known to be that of `top`. */
function workTreeOf(directory: string, { top, dotGit, surroundings }: Place): string {
  const common = commonDirectory(directory);
  if (common !== directory) {
    // Only a directory in the common one can speak for it: another could name the repository of somebody else.
    const isWorktree = dirname(directory) === join(common, "worktrees");
    const back = isWorktree ? readText(join(directory, "gitdir")) : null;
    if (back !== null && resolve(directory, trimmed(back)) === dotGit) return top;
    throw notItsOwn(directory, top, `run: git -C ${top} worktree repair`);
  }
  const [configured] = workTreesIn(directory);
  if (directory === dotGit) return configured ?? top;
  if (configured === top || (configured === undefined && hasWorkTree(directory, top))) return top;
  const isInWorkspace = surroundings.visible.some((root) => isAtOrBelow(directory, root));
  if (isInWorkspace) return top;
  throw notItsOwn(directory, top, `if it is its repository, run: git -C ${top} config core.worktree ${top}`);
}

/** A link in the workspace could lead anywhere, and one above cannot be mounted. */
function linked(dotGit: string, { visible }: Surroundings): null {
  const target = realpathOrNull(dotGit);
  const isVisible =
    target !== null && [dotGit, target].every((path) => visible.some((root) => isAtOrBelow(path, root)));
  if (isVisible) return null;
  throw unusable(`${quote(dotGit)} is a symbolic link`, "replace it with a file: gitdir: PATH");
}

function gitDirectoryOf(dotGit: string): string {
  const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(readText(dotGit) ?? "")?.[1];
  if (target === undefined)
    throw unusable(`${quote(dotGit)} does not name a git directory`, "git needs it repaired or removed");
  return resolve(dirname(dotGit), target);
}

function commonDirectory(directory: string): string {
  const pointer = readText(join(directory, "commondir"));
  return pointer === null ? directory : resolve(directory, trimmed(pointer));
}

function requireOwn(path: string, { owners, workspace }: Surroundings): void {
  const stat = statOrNull(path);
  if (stat === null) throw unusable(`${quote(path)} does not exist`, "repair the repository");
  if (realpathOrNull(path) !== path)
    throw unusable(`the way to ${quote(path)} leads over a symbolic link`, "name it by its real path");
  if (!owners.includes(Number(stat.uid)))
    throw unusable(`${quote(path)} belongs to another user`, "use a clone of your own");
  if (isAtOrBelow(workspace, path))
    throw unusable(`the workspace lies inside of ${quote(path)}`, "use a work tree as the workspace");
}

function requireParts(directory: string, common: string): void {
  const isComplete =
    statOrNull(join(directory, "HEAD"))?.isFile() &&
    ["objects", "refs"].every((name) => statOrNull(join(common, name))?.isDirectory());
  if (!isComplete) throw unusable(`${quote(directory)} is not a git directory`, "repair the repository");
}

function isGitDirectory(directory: string): boolean {
  const has = (name: string) => statOrNull(join(directory, name)) !== null;
  return has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
}

/** The directories from which it borrows objects. */
export function borrowedObjects(gitDirectory: string): string[] {
  const objects = join(gitDirectory, "objects");
  const text = readText(join(objects, "info", "alternates"));
  return parseAlternates(text ?? "").map((line) => resolve(objects, line));
}

function borrows(gitDirectory: string): boolean {
  return borrowedObjects(gitDirectory).length > 0;
}

/** Null for a path that is absent. Error: `workspace.invalid` for one that cannot be read. */
function readText(path: string): string | null {
  const bytes = attempt(path, (bytePath) => readSmallFile(bytePath, POINTER_MAX_BYTES));
  if (typeof bytes === "string") throw unusable(`${quote(path)} is not a small regular file`, "repair it");
  const text = bytes === null ? null : fromBytePath(bytes.toString("latin1"));
  if (bytes !== null && text === null)
    throw unusable(`${quote(path)} has a path that is not UTF-8`, "rename the directory");
  return text;
}

function statOrNull(path: string) {
  return attempt(path, lstatOrNull);
}

/** Null also for a path that this user cannot reach: then git cannot either. */
function reachable(path: string) {
  try {
    return lstatOrNull(toBytePath(path));
  } catch {
    return null;
  }
}

function attempt<T>(path: string, act: (path: BytePath) => T): T {
  try {
    return act(toBytePath(path));
  } catch (cause) {
    throw unusable(`${quote(path)} cannot be read`, "check its permissions", cause);
  }
}

function realpathOrNull(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function notItsOwn(directory: string, top: string, hint: string): BrigError {
  return unusable(
    `${quote(directory)}, which ${quote(join(top, ".git"))} names, does not name ${quote(top)}`,
    hint,
  );
}

function trimmed(text: string): string {
  return text.replace(/[\r\n]+$/, "");
}

function quote(path: string): string {
  return JSON.stringify(path);
}

const CONFIG_MAX_BYTES = 1024 * 1024;
const INDEX_MAX_BYTES = 256 * 1024 * 1024;
const MAX_LOOKED_AT = 1000;
const INODE_BITS = 32;

/** None if it is absent or closed to this user. Error: `workspace.invalid` for what is no small regular file. */
export function settingsIn(file: string): GitSetting[] {
  const bytes = orNull(() => readSmallFile(toBytePath(file), CONFIG_MAX_BYTES));
  if (typeof bytes === "string")
    throw unusable(`${JSON.stringify(file)} is not a small regular file`, "repair the repository");
  return bytes === null ? [] : parseGitConfig(bytes.toString("utf8"));
}

/** Absolute paths of the work trees that a git directory's configuration names, the one that counts first. */
function workTreesIn(directory: string): string[] {
  return ["config.worktree", "config"]
    .map((name) =>
      settingsIn(join(directory, name)).findLast(
        ({ name, value }) => name === "core.worktree" && value !== "",
      ),
    )
    .flatMap((setting) => (setting?.value ? [resolve(directory, setting.value)] : []));
}

/**
 * Whether the index was made of the very files that are in this directory. `git init --separate-git-dir` notes nowhere
 * to which work tree a git directory belongs. But an index has the inode number of each tracked file and the
 * nanosecond in which it was last changed, and whoever makes a file can choose neither.
 */
function hasWorkTree(directory: string, workTree: string): boolean {
  // A git directory of this name belongs to the directory that it is in.
  if (basename(directory) === ".git") return false;
  const bytes = orNull(() => readSmallFile(toBytePath(join(directory, "index")), INDEX_MAX_BYTES));
  if (bytes === null || typeof bytes === "string") return false;
  const files: IndexedFile[] = [];
  const usesSha256 = settingsIn(join(directory, "config")).some(
    ({ name, value }) => name === "extensions.objectformat" && value?.toLowerCase() === "sha256",
  );
  parseGitIndex(bytes, usesSha256 ? 32 : 20, (file) => {
    if (files.length < MAX_LOOKED_AT) files.push(file);
  });
  return files.some((file) => isSame(file, toBytePath(workTree)));
}

function isSame({ path, changedSeconds, changedNanoseconds, ino }: IndexedFile, workTree: string): boolean {
  const stat = orNull(() => lstatOrNull(`${workTree}/${path}`));
  // A file with another name could be tracked in another work tree.
  if (stat === null || !stat.isFile() || stat.nlink !== 1n) return false;
  const changedNs = BigInt(changedSeconds) * 1_000_000_000n + BigInt(changedNanoseconds);
  return stat.ctimeNs === changedNs && BigInt.asUintN(INODE_BITS, stat.ino) === BigInt(ino);
}

function orNull<T>(act: () => T): T | null {
  try {
    return act();
  } catch {
    return null;
  }
}

/** An error that says why git will not work in the sandbox. It becomes a warning: the sandbox starts without the repository. */
export function unusable(reason: string, hint: string, cause?: unknown): BrigError {
  return new BrigError(reason, { code: "workspace.invalid", hint, cause });
}
