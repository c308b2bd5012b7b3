import { describe, expect, it } from "vitest";
import {
  isBelowOneOf,
  isOfRepository,
  keyOf,
  pathFilter,
} from "../../../../src/sandbox/changes/workspace-change.js";

describe("the paths that were asked for", () => {
  const chosen = (paths: readonly string[] | undefined, withoutRepository = false) => {
    const isAsked = pathFilter("/repo/w", { paths, withoutRepository });
    return ["", "a", "a/b", "ab", "b", ".git", ".git/x", ".gitx", "c/.git"].filter((path) =>
      isAsked(Buffer.from(path)),
    );
  };

  it("are all, without any choice", () => {
    expect(chosen(undefined)).toHaveLength(9);
    expect(chosen(undefined, true)).toEqual(["", "a", "a/b", "ab", "b", ".gitx", "c/.git"]);
  });

  it.each([
    [["a"], ["a", "a/b"]],
    [["/repo/w/a/b"], ["a/b"]],
    [["a/b/c"], []],
    [
      ["./a/../b", "ab"],
      ["ab", "b"],
    ],
    [["a/"], ["a", "a/b"]],
    [[".git"], [".git", ".git/x"]],
    [[], []],
  ])("%j are %j", (paths, expected) => {
    expect(chosen(paths)).toEqual(expected);
  });

  it.each([["."], [""], ["/repo/w"], ["/repo/w/"], ["a/.."]])("%j is all of them", (path) => {
    expect(chosen([path])).toHaveLength(9);
  });

  it("do not bring back the repository", () => {
    expect(chosen([".git"], true)).toEqual([]);
    expect(chosen(["."], true)).not.toContain(".git/x");
  });

  it.each(["/", "/repo", "..", "../x", "a/../../x", "/repo/wx", "/other"])("%j is outside", (path) => {
    expect(() => chosen(["a", path])).toThrow(
      expect.objectContaining({
        code: "usage.invalid",
        message: `${JSON.stringify(path)} is not in the workspace /repo/w`,
        hint: expect.stringContaining("below the workspace"),
      }),
    );
  });

  it("are compared byte by byte", () => {
    const isAsked = pathFilter("/repo", { paths: ["ü"], withoutRepository: false });
    expect(isAsked(Buffer.from("ü/x"))).toBe(true);
    expect(isAsked(Buffer.from("\xc3", "latin1"))).toBe(false);
    expect(isAsked(Buffer.from("\xc3\xbcx", "latin1"))).toBe(false);
  });
});

it("what belongs to the repository is at the top", () => {
  const isOf = (path: string) => isOfRepository(Buffer.from(path));
  expect([".git", ".git/", ".git/a/b"].map(isOf)).toEqual([true, true, true]);
  expect(["", ".gi", ".gitignore", ".GIT", "a/.git"].map(isOf)).toEqual([false, false, false, false, false]);
});

it("a key is in the order of the bytes, and knows the directories above it", () => {
  expect(keyOf(Buffer.from([0x61, 0xff]))).toBe("a\xff");
  const directories = new Set(["a", "b/c", ""]);
  const isBelow = (path: string) => isBelowOneOf(path, directories);
  expect(["a/x", "a/x/y", "b/c/d", "b/c/d/e"].map(isBelow)).toEqual([true, true, true, true]);
  expect(["a", "ab", "ab/c", "b/c", "b/x", "c", "/x"].map(isBelow)).toEqual(Array(7).fill(false));
});
