import { describe, expect, it } from "vitest";
import { changedPaths, isUnnamed } from "../../../../../src/batch/runs/changes.js";

const added = (path: string) => ({ kind: "added", path }) as const;

describe("the paths of a patch", () => {
  it("are files below the working directory, changed and deleted ones first", () => {
    const changes = [
      { kind: "changed", path: "/app" },
      added("/app/b"),
      added("/app/b/new"),
      { kind: "changed", path: "/app/z" },
      { kind: "deleted", path: "/app/gone" },
      added("/application"),
      added("/etc/passwd"),
    ] as const;
    expect(changedPaths(changes, "/app")).toEqual([
      { kind: "deleted", path: "/app/gone", name: "gone" },
      { kind: "changed", path: "/app/z", name: "z" },
      { kind: "added", path: "/app/b/new", name: "b/new" },
    ]);
  });

  it("are also what has become a directory, and what a directory has become", () => {
    const changes = [
      { kind: "changed", path: "/app/was-file" },
      added("/app/was-file/x"),
      { kind: "changed", path: "/app/was-directory" },
      { kind: "deleted", path: "/app/was-directory/y" },
    ] as const;
    expect(changedPaths(changes, "/app").map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      "changed was-directory",
      "deleted was-directory/y",
      "added was-file/x",
      "changed was-file",
    ]);
  });

  it("are none of git's own, of brig's or of the kernel's, and none that git would not name", () => {
    const paths = [
      "/.git/config",
      "/src/.git",
      "/tests/test.sh",
      "/logs/agent/x",
      "/proc/1",
      "/a\\.git\\b",
      "/a/../b",
      "/a\nb",
      "/kept",
    ];
    expect(changedPaths(paths.map(added), "/").map(({ path }) => path)).toEqual(["/a\nb", "/kept"]);
  });

  it("are no names if the engine could not write them", () => {
    expect(["caf\uFFFD", "café"].map((name) => isUnnamed({ name }))).toEqual([true, false]);
  });
});
