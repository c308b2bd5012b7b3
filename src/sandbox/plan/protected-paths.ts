import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { findGitPaths } from "../git/git-paths.js";
import type { ProtectedPath } from "../git/protected-set.js";
import { findConfigPaths, missingConfigPath } from "./config-directories.js";
import { depth, directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";
import { isAbandonedPlaceholder } from "./placeholders.js";
import type { Identity, PlannedMount } from "./plan.js";
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
  /** Directories to create on the host before the container is created. */
  placeholders: string[];
}

/**
 * Plans the mounts of the roots, with each protected name of a writable root mounted read-only over itself:
 *
 * - an existing file or directory as it is. If `.git` is protected, so are all other repositories in a
 *   writable root, submodules, and everything that git's files and settings refer to: see `findGitPaths`;
 * - a name that does not exist as an empty placeholder directory, so that a command cannot create it. For
 *   `.git` this means that `git init` at the top of a writable root fails; git ignores an empty `.git`, so it
 *   still finds a repository further up;
 * - brig's and Codex's configuration directories and their `config.toml`, anywhere in a writable root;
 * - every directory between a writable root and a path mounted below it, mounted onto itself: a mount point
 *   cannot be renamed, but the directories above it otherwise could.
 *
 * Error: `policy.not-enforced` for a name that cannot be protected this way. Changes nothing and follows no
 * link.
 */
export async function planProtection(
  roots: readonly Root[],
  names: readonly string[],
  { configDirectories = [], homeDirectory = null }: Partial<HostDirectories> = {},
): Promise<Protection> {
  const writable = roots.filter((root) => root.access === "rw").map((root) => root.directory.path);
  const named: ProtectedPath[] = [];
  for (const root of writable) for (const name of names) named.push(await protectName(root, name));
  const all = names.includes(".git")
    ? await findGitPaths({ writable, protectedPaths: named, homeDirectory })
    : named;
  for (const path of findConfigPaths(configDirectories, writable))
    if (!all.some((outer) => isAtOrBelow(path, outer.path))) all.push(await protectConfigPath(path));
  const outermost = withoutCovered(all, writable);
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

async function protectName(root: string, name: string): Promise<ProtectedPath> {
  if (name === ".git" && root.split("/").includes(name))
    throw notEnforced(root, "it lies inside a .git directory");
  const path = join(root, name);
  const stat = await lstatOrNull(path);
  if (stat === null) return { path, identity: null };
  refuseUnmountable(path, stat);
  return { path, identity: (await isAbandonedPlaceholder(path)) ? null : identityOf(stat) };
}

async function protectConfigPath(path: string): Promise<ProtectedPath> {
  const stat = await lstatOrNull(path);
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

async function planPins(writable: readonly string[], targets: readonly string[]): Promise<PlannedMount[]> {
  const between = writable.flatMap((root) =>
    targets.filter((target) => isBelow(target, root)).flatMap((target) => directoriesBetween(root, target)),
  );
  const pinned = [...new Set(between)].filter((path) => !targets.includes(path));
  return await Promise.all(
    pinned.map(async (path): Promise<PlannedMount> => {
      const stat = await lstatOrNull(path);
      if (stat === null || !stat.isDirectory()) throw notEnforced(path, "it is no longer a directory");
      return { kind: "pin", path, access: "rw", identity: identityOf(stat) };
    }),
  );
}

function rootMount({ kind, access, directory }: Root): PlannedMount {
  return { kind, access, ...directory };
}

function protectedMount({ path, identity }: ProtectedPath): PlannedMount {
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
    if (errnoOf(cause) === "ENOENT") return null;
    throw notEnforced(path, "its metadata cannot be read", cause);
  }
}

function refuseUnmountable(path: string, stat: BigIntStats): void {
  if (stat.isSymbolicLink())
    throw notEnforced(
      path,
      "it is a symbolic link, which a command could replace even while its target is mounted read-only",
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
