import { type BigIntStats, constants } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { BrigError } from "../errors.js";
import { absentPlace, findOwnPlaces } from "./own-directories.js";
import { depth, directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";
import { isLeftPlaceholder } from "./placeholders.js";
import type { Identity, PlannedMount } from "./plan.js";
import type { CheckedDirectory } from "./workspace.js";

/** One directory of the host that a sandbox sees. */
export interface Root {
  kind: "workspace" | "writable-root";
  access: "ro" | "rw";
  directory: CheckedDirectory;
}

export interface Protection {
  /** Parents before children. */
  mounts: PlannedMount[];
  /** Directories to be made before the container is. */
  placeholders: string[];
}

const POINTER_MAX_BYTES = 64 * 1024;

/**
 * Plans the mounts of the roots with every protected name of a writable one bound read-only over it:
 *
 * - an existing directory or file as it is; where `.git` is a file, the directory it points to and that one's
 *   `commondir` too, if they lie inside a writable root;
 * - an absent name as an empty placeholder directory, so that it cannot be created either. That holds for `.git` as
 *   well: `git init` at the top of a writable root is refused. Git passes over an empty `.git` when it looks for a
 *   repository, so a repository further up is still found;
 * - `ownDirectories`, brig's and Codex's, and their `config.toml`, wherever in a writable root they lie;
 * - every directory between a writable root and a path bound below it is bound onto itself: a mount point cannot be
 *   renamed, its parents otherwise could.
 *
 * A name that cannot be held this way is `policy.not-enforced`. Nothing is changed and no link is followed.
 */
export async function planProtection(
  roots: readonly Root[],
  names: readonly string[],
  ownDirectories: readonly string[] = [],
): Promise<Protection> {
  const writable = roots.filter((root) => root.access === "rw").map((root) => root.directory.path);
  const held: Held[] = [];
  for (const root of writable) for (const name of names) held.push(...(await holdName(root, name, writable)));
  for (const place of await findOwnPlaces(ownDirectories, writable))
    held.push(...(await holdOwn(place, held)));
  const outermost = withoutCovered(held, writable);
  refuseRootsInsideProtected(roots, outermost);
  const pins = await planPins(writable, [
    ...outermost.map(({ path }) => path),
    ...roots.map(({ directory }) => directory.path),
  ]);
  return {
    mounts: sorted([...roots.map(rootMount), ...pins, ...outermost.map(protectedMount)]),
    placeholders: outermost.filter(({ identity }) => identity === null).map(({ path }) => path),
  };
}

interface Held {
  path: string;
  /** Null: there is nothing yet. */
  identity: Identity | null;
}

async function holdName(root: string, name: string, writable: readonly string[]): Promise<Held[]> {
  if (name === ".git" && root.split("/").includes(name))
    throw notEnforced(root, "it lies inside a .git directory");
  const path = join(root, name);
  const stat = await lstatOrNull(path);
  if (stat === null) return [{ path, identity: null }];
  refuseUnmountable(path, stat);
  if (await isLeftPlaceholder(path)) return [{ path, identity: null }];
  const held: Held = { path, identity: identityOf(stat) };
  if (name !== ".git") return [held];
  return stat.isFile()
    ? [held, ...(await holdPointedTo(path, writable))]
    : [held, ...(await holdCommon(path, writable))];
}

/** What a name holds already may also be absent: then it cannot be created. */
async function holdOwn(path: string, held: readonly Held[]): Promise<Held[]> {
  if (held.some((other) => isAtOrBelow(path, other.path))) return [];
  const stat = await lstatOrNull(path);
  if (stat === null) throw absentPlace(path);
  refuseUnmountable(path, stat);
  return [{ path, identity: identityOf(stat) }];
}

/** A worktree or submodule: `.git` is a file that names the directory with the hooks and the configuration. */
async function holdPointedTo(pointer: string, writable: readonly string[]): Promise<Held[]> {
  const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(await readPointer(pointer))?.[1];
  if (target === undefined) return [];
  const gitDirectory = resolve(dirname(pointer), target);
  const held = await holdTarget(gitDirectory, pointer, writable);
  return [...held, ...(await holdCommon(gitDirectory, writable))];
}

/** Hooks and configuration of a worktree lie in the repository it belongs to. */
async function holdCommon(gitDirectory: string, writable: readonly string[]): Promise<Held[]> {
  const file = join(gitDirectory, "commondir");
  const stat = await lstatOrNull(file);
  if (stat === null || !stat.isFile()) return [];
  const common = resolve(gitDirectory, (await readPointer(file)).replace(/[\r\n]+$/, ""));
  return await holdTarget(common, file, writable);
}

async function holdTarget(target: string, pointer: string, writable: readonly string[]): Promise<Held[]> {
  // By name it may lie outside every writable root, and a link on the way lead back into one.
  const real = await realpath(target).catch(() => null);
  const inside = writable.find((root) =>
    [target, real].some((path) => path !== null && isAtOrBelow(root, path)),
  );
  if (inside !== undefined)
    throw notEnforced(pointer, `it points to ${quote(target)}, which holds all of ${quote(inside)}`);
  const root = writable.find((directory) => isBelow(target, directory));
  if (root !== undefined) return [await holdBelow(root, target, pointer)];
  const realRoot = writable.find((directory) => real !== null && isBelow(real, directory));
  return real === null || realRoot === undefined ? [] : [await holdBelow(realRoot, real, pointer)];
}

async function holdBelow(root: string, target: string, pointer: string): Promise<Held> {
  let identity: Identity | null = null;
  for (const path of [...directoriesBetween(root, target), target]) {
    const stat = await lstatOrNull(path);
    if (stat === null) throw notEnforced(pointer, `it points to ${quote(path)}, which could be created`);
    refuseUnmountable(path, stat);
    identity = identityOf(stat);
  }
  return { path: target, identity };
}

/** What lies below another protected path is read-only with it, unless a writable root reopens it in between. */
function withoutCovered(held: readonly Held[], writable: readonly string[]): Held[] {
  const unique = [...new Map(held.map((path) => [path.path, path])).values()];
  return unique.filter(
    ({ path }) =>
      !unique.some(
        (other) =>
          isBelow(path, other.path) &&
          !writable.some((root) => isBelow(root, other.path) && isAtOrBelow(path, root)),
      ),
  );
}

function refuseRootsInsideProtected(roots: readonly Root[], held: readonly Held[]): void {
  for (const { directory, access } of roots) {
    const outer = held.find(({ path }) => isAtOrBelow(directory.path, path));
    if (outer !== undefined && access === "rw")
      throw notEnforced(outer.path, `the writable directory ${quote(directory.path)} lies inside it`);
  }
}

async function planPins(writable: readonly string[], targets: readonly string[]): Promise<PlannedMount[]> {
  const between = writable.flatMap((root) =>
    targets.filter((target) => isBelow(target, root)).flatMap((target) => directoriesBetween(root, target)),
  );
  const pinned = [...new Set(between)].filter((path) => !targets.includes(path));
  return await Promise.all(
    pinned.map(async (path): Promise<PlannedMount> => {
      const stat = await lstatOrNull(path);
      if (stat === null || !stat.isDirectory()) throw notEnforced(path, "it is not a directory any more");
      return { kind: "pin", path, access: "rw", identity: identityOf(stat) };
    }),
  );
}

function rootMount({ kind, access, directory }: Root): PlannedMount {
  return { kind, access, ...directory };
}

function protectedMount({ path, identity }: Held): PlannedMount {
  return { kind: "protected", path, access: "ro", identity };
}

function sorted(mounts: PlannedMount[]): PlannedMount[] {
  return mounts.sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
}

function identityOf({ dev, ino }: BigIntStats): Identity {
  return { dev: String(dev), ino: String(ino) };
}

async function readPointer(file: string): Promise<string> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > POINTER_MAX_BYTES)
      throw notEnforced(file, "it is not a small regular file");
    return (await handle.readFile()).toString("utf8");
  } catch (cause) {
    if (cause instanceof BrigError) throw cause;
    throw notEnforced(file, "it cannot be read, so what it points to is unknown", cause);
  }
}

async function lstatOrNull(path: string): Promise<BigIntStats | null> {
  try {
    return await lstat(path, { bigint: true });
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return null;
    throw notEnforced(path, "it cannot be looked at", cause);
  }
}

function refuseUnmountable(path: string, stat: BigIntStats): void {
  if (stat.isSymbolicLink())
    throw notEnforced(
      path,
      "it is a symbolic link, and a link can be replaced whatever is mounted on its target",
    );
  if (!stat.isDirectory() && !stat.isFile()) throw notEnforced(path, "it is neither a file nor a directory");
}

function notEnforced(path: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${quote(path)} cannot be kept read-only: ${reason}`, {
    code: "policy.not-enforced",
    hint: "repair it, use --sandbox read-only, or a policy file that does not protect this name",
    cause,
  });
}

function quote(path: string): string {
  return JSON.stringify(path);
}
