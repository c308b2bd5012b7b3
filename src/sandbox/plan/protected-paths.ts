import { type BigIntStats, lstatSync, realpathSync, type Stats } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import { decodeBytePath, stepsTo, toBytePath } from "../git/byte-paths.js";
import { findGitPaths } from "../git/git-paths.js";
import type { ProtectedPath } from "../git/protected-set.js";
import type { LoadedPolicy } from "../policy/policy.js";
import { depth, directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";
import { isAbandonedPlaceholder } from "./placeholders.js";
import type { Identity, KnownDirectory, PlannedMount, SandboxPlan } from "./plan.js";
import type { CheckedDirectory, HostDirectories } from "./workspace.js";

/** A directory of the host that is visible in the sandbox. */
export interface Root {
  kind: "workspace" | "writable-root";
  access: "ro" | "rw";
  directory: CheckedDirectory;
}

export interface Protection {
  /** Parents come before children. */
  mounts: PlannedMount[];
  /** Paths to create on the host before the container is created: directories, and the files in `emptyFiles`. */
  placeholders: string[];
  /** Absent protected paths that must be files if they are anything. In an overlay nothing is mounted there. */
  emptyFiles: string[];
  /**
   * Protected names that do not exist in an overlay. A mount keeps commands from creating them, so no
   * directory is needed on the host.
   */
  absentNames: string[];
  knownDirectories: readonly KnownDirectory[];
}

/**
 * Plans the mounts of the roots, with each protected name of a writable root mounted read-only over itself:
 *
 * - an existing file or directory as it is. If `.git` is protected, so are all other repositories in a
 *   writable root, submodules, and everything that git's files and settings refer to: see `findGitPaths`;
 * - a name that does not exist as an empty placeholder, so that a command cannot create it. For
 *   `.git` this means that `git init` at the top of a writable root fails; git ignores an empty `.git`, so it
 *   still finds a repository further up;
 * - brig's and Codex's configuration directories and their `config.toml`, anywhere in a writable root;
 * - every directory between a writable root and a path mounted below it, mounted onto itself: a mount point
 *   cannot be renamed, but the directories above it otherwise could.
 *
 * In a copy-on-write workspace nothing on the host has to be kept from being created or renamed, so it has no
 * placeholders, and directories above protected paths can be renamed there.
 *
 * With `repository`, the `.git` of the workspace is writable, because it is a copy. What its files refer to
 * elsewhere, other repositories and submodules stay protected.
 *
 * Error: `policy.not-enforced` for a name that cannot be protected this way. Changes nothing and follows no
 * link.
 */
export async function planProtection(
  roots: readonly Root[],
  names: readonly string[],
  options: ProtectionOptions = {},
): Promise<Protection> {
  const { overlayVolume, repository, like } = options;
  const writable = roots.filter((root) => root.access === "rw").map((root) => root.directory.path);
  const known = like === undefined ? null : await sameProtection(like, roots);
  const copy = overlayVolume && roots.find(({ kind }) => kind === "workspace")?.directory.path;
  const found = known ?? (await search(writable, names, { ...options, copy }));
  const covering = known?.paths ?? withoutCovered(found.paths, writable);
  refuseRootsInsideProtected(roots, covering);
  const outermost = covering.filter(({ path }) => path !== repository?.path);
  const isInOverlay = (path: string) =>
    overlayVolume !== undefined && innermost(roots, path)?.kind === "workspace";
  const pins = planPins(writable, [
    ...outermost.map(({ path }) => path),
    ...roots.map(({ directory }) => directory.path),
  ]).filter(({ path }) => !isInOverlay(path));
  const absent = outermost.filter(({ identity }) => identity === null).map(({ path }) => path);
  const emptyFiles = outermost.filter(({ isEmptyFile }) => isEmptyFile).map(({ path }) => path);
  const absentInOverlay = absent.filter(isInOverlay);
  const mounted = outermost.filter(({ path }) => !absentInOverlay.includes(path));
  return {
    mounts: sorted([
      ...roots.map((root) => rootMount(root, overlayVolume)),
      ...(repository?.volume === undefined ? [] : [repositoryMount(repository.path, repository.volume)]),
      ...pins,
      ...mounted.map(
        ({ path, identity }): PlannedMount => ({ kind: "protected", path, access: "ro", identity }),
      ),
    ]),
    placeholders: absent.filter((path) => !isInOverlay(path)),
    emptyFiles,
    absentNames: absentInOverlay.filter((path) => !emptyFiles.includes(path)),
    knownDirectories: found.knownDirectories,
  };
}

export interface ProtectionOptions extends Partial<HostDirectories> {
  /** The volume that is mounted as the workspace; undefined if that is the host's own directory. */
  overlayVolume?: string | undefined;
  /**
   * The `.git` of the workspace, if commands may write to a copy of it: the volume that is mounted there, or
   * undefined if the whole workspace is a copy.
   */
  repository?: { path: string; volume: string | undefined } | undefined;
  /** Absolute paths that need not be protected where that is not possible. */
  unprotected?: readonly string[] | undefined;
  /** The plan of a sandbox with the same settings: its protected paths are not searched for again if they are as they were. */
  like?: SandboxPlan | undefined;
}

interface SearchOptions extends ProtectionOptions {
  /** The copy-on-write workspace. */
  copy: string | undefined;
}

async function search(
  writable: readonly string[],
  names: readonly string[],
  { configDirectories = [], homeDirectory = null, gitConfig, unprotected = [], copy }: SearchOptions,
): Promise<FoundProtection> {
  const named: ProtectedPath[] = [];
  for (const root of writable)
    for (const name of names)
      named.push(...(await protectName(root, name, { writable, unprotected, isCopy: root === copy })));
  const knownDirectories: KnownDirectory[] = [];
  const onTelling = (directory: KnownDirectory) => void knownDirectories.push(directory);
  const all = names.includes(".git")
    ? await findGitPaths({
        ...{ writable, protectedPaths: named, homeDirectory, userConfig: gitConfig },
        ...{ onTelling, unprotected },
      })
    : named;
  for (const path of findConfigPaths(configDirectories, writable))
    if (!all.some((outer) => isAtOrBelow(path, outer.path))) all.push(protectConfigPath(path));
  return { paths: all, knownDirectories };
}

function innermost(roots: readonly Root[], path: string): Root | undefined {
  return roots
    .filter(({ directory }) => isAtOrBelow(path, directory.path))
    .toSorted((a, b) => b.directory.path.length - a.directory.path.length)[0];
}

interface NameOptions {
  writable: readonly string[];
  unprotected: readonly string[];
  /** A command that replaces a link replaces it in the copy, and nothing at a protected name is ever applied. */
  isCopy: boolean;
}

async function protectName(
  root: string,
  name: string,
  { writable, unprotected, isCopy }: NameOptions,
): Promise<ProtectedPath[]> {
  if (name === ".git" && root.split("/").includes(name))
    throw notEnforced(root, "it lies inside a .git directory");
  const path = join(root, name);
  const stat = lstatOrNull(path);
  if (stat === null) return [{ path, identity: null }];
  const isGivenUp = unprotected.includes(path) || (isCopy && stat.isSymbolicLink());
  if (isGivenUp && !isMountable(stat)) return protectTarget(path, writable);
  refuseUnmountable(path, stat, `, or let commands change it: --unprotected ${quote(path)}`);
  return [{ path, identity: (await isAbandonedPlaceholder(path)) ? null : identityOf(stat) }];
}

/** Protects the target of a link that commands can replace: they need not be able to change what is there now. */
function protectTarget(link: string, writable: readonly string[]): ProtectedPath[] {
  const target = realpathOrNull(link);
  if (target === null || !writable.some((root) => isBelow(target, root))) return [];
  const stat = lstatOrNull(target);
  return stat !== null && isMountable(stat) ? [{ path: target, identity: identityOf(stat) }] : [];
}

function realpathOrNull(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function protectConfigPath(path: string): ProtectedPath {
  const stat = lstatOrNull(path);
  if (stat === null) throw missingConfigPath(path);
  refuseUnmountable(path, stat);
  return { path, identity: identityOf(stat) };
}

/** Paths below another are read-only already, unless a writable root lies in between. */
function withoutCovered(paths: readonly ProtectedPath[], writable: readonly string[]): ProtectedPath[] {
  const unique = [...new Map(paths.map((one) => [one.path, one])).values()];
  return unique.filter(
    ({ path }) =>
      !unique.some(
        (outer) =>
          isBelow(path, outer.path) &&
          !writable.some((root) => isBelow(root, outer.path) && isAtOrBelow(path, root)),
      ),
  );
}

function refuseRootsInsideProtected(roots: readonly Root[], paths: readonly ProtectedPath[]): void {
  for (const { directory, access } of roots) {
    const outer = paths.find(({ path }) => isAtOrBelow(directory.path, path));
    if (outer !== undefined && access === "rw")
      throw notEnforced(outer.path, `the writable directory ${quote(directory.path)} lies inside it`);
  }
}

function planPins(writable: readonly string[], targets: readonly string[]): PlannedMount[] {
  const between = writable.flatMap((root) =>
    targets.filter((target) => isBelow(target, root)).flatMap((target) => directoriesBetween(root, target)),
  );
  const pinned = [...new Set(between)].filter((path) => !targets.includes(path));
  return pinned.map((path): PlannedMount => {
    const stat = lstatOrNull(path);
    if (stat === null || !stat.isDirectory()) throw notEnforced(path, "it is no longer a directory");
    return { kind: "pin", path, access: "rw", identity: identityOf(stat) };
  });
}

function rootMount({ kind, access, directory }: Root, overlayVolume: string | undefined): PlannedMount {
  if (kind !== "workspace" || overlayVolume === undefined) return { kind, access, ...directory };
  return {
    kind,
    access,
    path: directory.path,
    identity: null,
    source: { kind: "volume", volume: overlayVolume },
  };
}

function repositoryMount(path: string, volume: string): PlannedMount {
  return { kind: "writable-root", access: "rw", path, identity: null, source: { kind: "volume", volume } };
}

function sorted(mounts: PlannedMount[]): PlannedMount[] {
  return mounts.sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
}

function identityOf({ dev, ino }: BigIntStats): Identity {
  return { dev: String(dev), ino: String(ino) };
}

function lstatOrNull(path: string): BigIntStats | null {
  try {
    return lstatSync(path, { bigint: true });
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return null;
    throw notEnforced(path, "its metadata cannot be read", { cause });
  }
}

function isMountable(stat: BigIntStats): boolean {
  return stat.isDirectory() || stat.isFile();
}

/** `instead` is added to the hint. */
function refuseUnmountable(path: string, stat: BigIntStats, instead = ""): void {
  if (isMountable(stat)) return;
  const reason = stat.isSymbolicLink()
    ? "it is a symbolic link, which a command could replace even while its target is mounted read-only"
    : "it is neither a file nor a directory";
  throw notEnforced(path, reason, { instead });
}

function notEnforced(
  path: string,
  reason: string,
  { cause, instead = "" }: { cause?: unknown; instead?: string } = {},
): BrigError {
  return new BrigError(`${quote(path)} cannot be kept read-only: ${reason}`, {
    code: "policy.not-enforced",
    hint: `repair it, use --sandbox read-only, or a policy file that does not protect this name${instead}`,
    cause,
  });
}

function quote(path: string): string {
  return JSON.stringify(path);
}

/** The result of a search through the workspace. `paths` are to be protected; one of them may be inside of another. */
interface FoundProtection {
  paths: ProtectedPath[];
  knownDirectories: readonly KnownDirectory[];
}

/**
 * The protection of a sandbox, for another one with the same settings, which need not search the same directories
 * again. Null unless all of it is still on the host as that sandbox found it, in the same directories: then
 * what is there now has to be searched. Commands of the other sandbox can change no more than those of this one.
 */
async function sameProtection(
  plan: SandboxPlan,
  roots: readonly { directory: CheckedDirectory }[],
): Promise<FoundProtection | null> {
  const { overlay, mounts, absentNames, emptyFiles, knownDirectories } = plan;
  const isSameRoot = ({ directory: { path, identity } }: { directory: CheckedDirectory }) => {
    const mount = mounts.find((one) => one.path === path && one.kind !== "protected" && one.kind !== "pin");
    return isSame(overlay?.path === path ? overlay.identity : (mount?.identity ?? null), identity);
  };
  if (!roots.every(isSameRoot)) return null;
  const paths = [
    ...mounts
      .filter(({ kind, path }) => kind === "protected" && !emptyFiles.includes(path))
      .map(({ path, identity }) => ({ path, identity })),
    ...absentNames.map((path) => ({ path, identity: null })),
    ...emptyFiles.map((path) => ({ path, identity: null, isEmptyFile: true })),
  ];
  for (const { path, identity } of paths) if (!isSame(identity, await identityNow(path))) return null;
  return { paths, knownDirectories };
}

/** Null for a path that does not exist, or only as the placeholder of a sandbox. */
async function identityNow(path: string): Promise<Identity | "unknown" | null> {
  let stat: BigIntStats | undefined;
  try {
    stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return "unknown";
  }
  if (stat === undefined || (await isAbandonedPlaceholder(path))) return null;
  return { dev: String(stat.dev), ino: String(stat.ino) };
}

function isSame(one: Identity | null, other: Identity | "unknown" | null): boolean {
  if (one === null || other === null) return one === other;
  return other !== "unknown" && one.dev === other.dev && one.ino === other.ino;
}

/**
 * Finds brig's and Codex's configuration directories, and the `config.toml` of each, where they lie in a
 * writable directory. The next start obeys them: a command that could write there would decide who receives
 * the API key. Returns paths without symbolic links, whether they exist or not. Error: `workspace.invalid`
 * for a path that a command could redirect.
 */
export function findConfigPaths(directories: readonly string[], writable: readonly string[]): string[] {
  const isInWritable = (path: string) => writable.some((root) => isBelow(path, root));
  const found = new Set<string>();
  for (const path of directories.flatMap((directory) => [directory, join(directory, "config.toml")])) {
    const steps = stepsTo(toBytePath(path)).map((step) => ({ ...step, path: decodeBytePath(step.path) }));
    const target = steps.at(-1)?.path ?? "/";
    const link = steps.find((step) => step.isLink && isInWritable(step.path));
    if (link !== undefined) throw replaceable(link.path, { path, target });
    if (writable.includes(target)) throw writableItself(target);
    if (isInWritable(target)) found.add(target);
  }
  return [...found];
}

/** The error for a path that does not exist: it cannot be mounted read-only, so a command could create it. */
function missingConfigPath(path: string): BrigError {
  return new BrigError(
    `the configuration is looked for in ${JSON.stringify(path)}, which does not exist and which a command could create`,
    {
      code: "workspace.invalid",
      hint: "create it, set BRIG_HOME or CODEX_HOME to a directory outside the workspace, or use --sandbox read-only",
    },
  );
}

function replaceable(link: string, { path, target }: { path: string; target: string }): BrigError {
  return new BrigError(
    `${JSON.stringify(link)}, on the way to ${JSON.stringify(path)}, is a symbolic link that a command could replace`,
    {
      code: "workspace.invalid",
      hint: `it leads to ${JSON.stringify(target)}: set BRIG_HOME or CODEX_HOME so that no link is in the workspace, or use --sandbox read-only`,
    },
  );
}

function writableItself(directory: string): BrigError {
  return new BrigError(
    `commands may not write to ${JSON.stringify(directory)}: the next start obeys its config.toml`,
    {
      code: "workspace.invalid",
      hint: "use another directory as the workspace, set BRIG_HOME or CODEX_HOME to another one, or use --sandbox read-only",
    },
  );
}

interface Ids {
  uid: number;
  gid: number;
}

interface Commands {
  policy: LoadedPolicy;
  /** The user that they run as in the container. */
  user: Ids;
  /** The user who runs brig. */
  hostUser: Ids;
  engine: Pick<EngineInfo, "securityOptions">;
}

const READ = 0o5;
const READ_AND_WRITE = 0o7;

/**
 * Says of each directory of the host that commands cannot use although the policy lets them: it belongs to somebody
 * else. They have no capabilities, so even root cannot, and none of the further groups of who runs brig.
 */
export function ownerNotices(roots: readonly Root[], commands: Commands): BrigError[] {
  const { policy, engine, user, hostUser } = commands;
  if (policy.policy.capabilities !== "none") return [];
  // In a rootless engine's user namespace its user is root.
  const actual = isRootless(engine) ? hostUser : user;
  return roots.flatMap(({ access, directory: { path } }) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined || permits(stat, actual, access === "rw" ? READ_AND_WRITE : READ)) return [];
    const what = permits(stat, actual, READ) ? "write to" : "use";
    return new BrigError(
      `commands cannot ${what} ${JSON.stringify(path)}: it belongs to ${stat.uid}:${stat.gid}, and they run as ${actual.uid}:${actual.gid}`,
      { code: "workspace.invalid", hint: remedy(stat, commands) },
    );
  });
}

function permits({ mode, uid, gid }: Stats, user: Ids, wanted: number): boolean {
  const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode;
  return (bits & wanted) === wanted;
}

function remedy({ uid, gid }: Stats, { user, hostUser, engine }: Commands): string {
  if (isRootless(engine) || (hostUser.uid !== 0 && user.uid === hostUser.uid))
    return "use a directory of your own, or have its owner give it to you: chown, or chmod";
  const owner = `${uid}:${gid}`;
  return `run them as its owner: --user ${owner}, or user = "${owner}" in a policy file`;
}
