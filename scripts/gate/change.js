import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/run.js";

/** Names the newest commit that a whole check has passed for. */
const BASE_FILE = ".ci/base";

/**
 * What is changed since a commit: each path that was added, changed or removed, uncommitted ones too. The commit is `base`, or else the one in
 * `.ci/base`. Null if that commit is not in this clone, as in a shallow one: then it is not known what has changed.
 */
export function changesSince(base) {
  const commit = base ?? readFileSync(join(root, BASE_FILE), "utf8").trim();
  const paths = changedSince(commit);
  return paths === null ? null : { commit, paths };
}

/** Null if there is no such commit. A file that has moved was removed in one place and added in the other. */
export function changedSince(commit) {
  const lists = [
    ["diff", "--name-only", "--no-renames", "-z", commit, "--"],
    ["ls-files", "--others", "--exclude-standard", "-z"],
  ];
  try {
    const names = lists.flatMap((argv) => git(argv).split("\0"));
    return [...new Set(names.filter((name) => name !== ""))].sort();
  } catch (error) {
    if (error.status === 128) return null;
    throw error;
  }
}

/** The files that have moved since a commit: by each one's path now the path that it had. Empty if there is no such commit. */
export function movedSince(commit) {
  try {
    const lines = git(["diff", "--name-status", "-M40%", "-l20000", "--diff-filter=R", commit, "--"]).split(
      "\n",
    );
    return new Map(lines.map((line) => line.split("\t")).map(([, before, now]) => [now, before]));
  } catch (error) {
    if (error.status === 128) return new Map();
    throw error;
  }
}

function git(argv) {
  return execFileSync("git", argv, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "ignore"],
  });
}
