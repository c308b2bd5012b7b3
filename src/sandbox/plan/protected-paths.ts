import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import type { HeldPlace } from "../git/held-places.js";
import { findRepositoryPlaces } from "../git/repository-places.js";
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

export interface KnownDirectories {
  /** Brig's and Codex's own. */
  ownDirectories?: readonly string[] | undefined;
  /** The user's: git's configuration may name files in it. */
  homeDirectory?: string | null;
}

/**
 * Plans the mounts of the roots with every protected name of a writable one bound read-only over it:
 *
 * - an existing directory or file as it is; with `.git` also every other repository in a writable root, each submodule, there or
 *   not, and what git's files and settings lead to: see `findRepositoryPlaces`;
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
  { ownDirectories = [], homeDirectory = null }: KnownDirectories = {},
): Promise<Protection> {
  const writable = roots.filter((root) => root.access === "rw").map((root) => root.directory.path);
  const named: HeldPlace[] = [];
  for (const root of writable) for (const name of names) named.push(await holdName(root, name));
  const held = names.includes(".git")
    ? await findRepositoryPlaces({ writable, held: named, homeDirectory })
    : named;
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

async function holdName(root: string, name: string): Promise<HeldPlace> {
  if (name === ".git" && root.split("/").includes(name))
    throw notEnforced(root, "it lies inside a .git directory");
  const path = join(root, name);
  const stat = await lstatOrNull(path);
  if (stat === null) return { path, identity: null };
  refuseUnmountable(path, stat);
  return { path, identity: (await isLeftPlaceholder(path)) ? null : identityOf(stat) };
}

/** What a name holds already may also be absent: then it cannot be created. */
async function holdOwn(path: string, held: readonly HeldPlace[]): Promise<HeldPlace[]> {
  if (held.some((other) => isAtOrBelow(path, other.path))) return [];
  const stat = await lstatOrNull(path);
  if (stat === null) throw absentPlace(path);
  refuseUnmountable(path, stat);
  return [{ path, identity: identityOf(stat) }];
}

/** What lies below another protected path is read-only with it, unless a writable root reopens it in between. */
function withoutCovered(held: readonly HeldPlace[], writable: readonly string[]): HeldPlace[] {
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

function refuseRootsInsideProtected(roots: readonly Root[], held: readonly HeldPlace[]): void {
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

function protectedMount({ path, identity }: HeldPlace): PlannedMount {
  return { kind: "protected", path, access: "ro", identity };
}

function sorted(mounts: PlannedMount[]): PlannedMount[] {
  return mounts.sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
}

function identityOf({ dev, ino }: BigIntStats): Identity {
  return { dev: String(dev), ino: String(ino) };
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
