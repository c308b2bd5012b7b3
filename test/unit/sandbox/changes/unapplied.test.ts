import { describe, expect, it } from "vitest";
import { whyNotApplied } from "../../../../src/sandbox/changes/apply.js";
import type { SeenChange } from "../../../../src/sandbox/changes/workspace-change.js";
import type { FileType } from "../../../../src/sandbox/portable-sandbox.js";

const protection = { protectedNames: [".Codex"], leftOut: ["a/mounted", "b"] };

function stateOf(type: FileType) {
  const times = { modifiedNs: 1n, changedNs: 1n };
  const state = { type, mode: 0o644, sizeBytes: 1, ...times, ino: 1n, dev: 1n };
  return { ...state, uid: 0, gid: 0, links: 1, rdev: 0n, linkTarget: null };
}

function changeOf(path: string, types: { before?: FileType; now?: FileType }): SeenChange {
  const before = types.before === undefined ? null : stateOf(types.before);
  const now = types.now === undefined ? null : stateOf(types.now);
  const change = before === null ? "added" : now === null ? "deleted" : "modified";
  const base = { state: before, unchangedNs: 0n };
  return { path: Buffer.from(path), change, before, now, base } as SeenChange;
}

const reason = (path: string, types: { before?: FileType; now?: FileType }) =>
  whyNotApplied(changeOf(path, types), protection);

describe("a change is made on the host", () => {
  it.for<FileType>(["file", "directory", "symlink"])("where it makes a %s", (now) => {
    expect(reason("a/new", { now })).toBeNull();
    expect(reason("a/new", { before: "file", now })).toBeNull();
  });

  it.for<[string, string, { before?: FileType; now?: FileType }]>([
    ["removes a directory in which nothing is protected", "c", { before: "directory" }],
    ["removes a file above whose name something is protected", "a", { before: "file" }],
    ["changes a directory in which something is protected", "a", { before: "directory", now: "directory" }],
    ["has a protected name further down", "c/.codex", { now: "file" }],
    ["has a name like git's own", "c/.gitignore", { now: "file" }],
    ["has a name that begins like a protected one", ".codexes", { now: "file" }],
    ["is beside a mount", "bb", { now: "file" }],
  ])("that %s", ([, path, types]) => {
    expect(reason(path, types)).toBeNull();
  });
});

describe("a change is not made on the host", () => {
  it.for<[string, string, { before?: FileType; now?: FileType }, string]>([
    ["in a repository", "c/.git/config", { now: "file" }, "it belongs to a git repository's own files"],
    [
      "in a repository, in capitals",
      ".GIT/hooks",
      { now: "file" },
      "it belongs to a git repository's own files",
    ],
    ["to a stage of a commit", ".brig-stage-1/a", { now: "file" }, "brig uses names like this itself"],
    ["to a protected name", ".codex", { before: "file" }, ".Codex is a protected name"],
    ["below one, in capitals", ".CODEX/a", { now: "file" }, ".Codex is a protected name"],
    ["to a mount", "b", { now: "file" }, "it is protected"],
    ["below a mount", "a/mounted/x", { now: "file" }, "it is protected"],
    [
      "that takes a mount's directory away",
      "a",
      { before: "directory" },
      "it has something protected in it: a/mounted",
    ],
    [
      "that makes a file of it",
      "a",
      { before: "directory", now: "file" },
      "it has something protected in it: a/mounted",
    ],
    ["to a pipe", "c", { now: "fifo" }, "it is a fifo"],
    ["to a device", "c", { before: "file", now: "char-device" }, "it is a char-device"],
  ])("%s", ([, path, types, why]) => {
    expect(reason(path, types)).toBe(why);
  });
});
