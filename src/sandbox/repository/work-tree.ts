import { basename, join, resolve } from "node:path";
import { lstatOrNull, readSmallFile, toBytePath } from "../git/byte-paths.js";
import { type GitSetting, parseGitConfig } from "../git/git-config.js";
import { type IndexedFile, parseGitIndex } from "../git/git-index.js";
import { unusable } from "./unusable.js";

const CONFIG_MAX_BYTES = 1024 * 1024;
const INDEX_MAX_BYTES = 256 * 1024 * 1024;
const MAX_LOOKED_AT = 1000;
const INODE_BITS = 32;

/** None if it is absent or closed to this user. Error: `workspace.invalid` for what is no small regular file. */
export function settingsIn(file: string): GitSetting[] {
  const bytes = attempt(() => readSmallFile(toBytePath(file), CONFIG_MAX_BYTES));
  if (typeof bytes === "string")
    throw unusable(`${JSON.stringify(file)} is not a small regular file`, "repair the repository");
  return bytes === null ? [] : parseGitConfig(bytes.toString("utf8"));
}

/** Absolute paths of the work trees that a git directory's configuration names, the one that counts first. */
export function workTreesIn(directory: string): string[] {
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
export function hasWorkTree(directory: string, workTree: string): boolean {
  // A git directory of this name belongs to the directory that it is in.
  if (basename(directory) === ".git") return false;
  const bytes = attempt(() => readSmallFile(toBytePath(join(directory, "index")), INDEX_MAX_BYTES));
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
  const stat = attempt(() => lstatOrNull(`${workTree}/${path}`));
  // A file with another name could be tracked in another work tree.
  if (stat === null || !stat.isFile() || stat.nlink !== 1n) return false;
  const changedNs = BigInt(changedSeconds) * 1_000_000_000n + BigInt(changedNanoseconds);
  return stat.ctimeNs === changedNs && BigInt.asUintN(INODE_BITS, stat.ino) === BigInt(ino);
}

function attempt<T>(act: () => T): T | null {
  try {
    return act();
  } catch {
    return null;
  }
}
