import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { depth, directoriesBetween, isAtOrBelow, isBelow } from "../../../../src/sandbox/plan/paths.js";

describe("below", () => {
  it("is decided by whole names", () => {
    expect(isBelow("/a/b", "/a")).toBe(true);
    expect(isBelow("/ab", "/a")).toBe(false);
    expect(isBelow("/a", "/a")).toBe(false);
    expect(isAtOrBelow("/a", "/a")).toBe(true);
    expect(isBelow("/a", "/a/b")).toBe(false);
  });

  it("the root lies everything but itself", () => {
    expect(isBelow("/a", "/")).toBe(true);
    expect(isBelow("/", "/")).toBe(false);
  });

  it("agrees with the relative path between the two", () => {
    const path = fc
      .array(fc.constantFrom("a", "ab", "b", ".git"), { maxLength: 4 })
      .map((names) => `/${names.join("/")}`);
    fc.assert(
      fc.property(path, path, (inner, outer) => {
        const relative = posix.relative(outer, inner);
        expect(isBelow(inner, outer)).toBe(relative !== "" && !relative.startsWith(".."));
      }),
    );
  });
});

it("the directories between two are named from the outside in, without either", () => {
  expect(directoriesBetween("/a", "/a/b/c/d")).toEqual(["/a/b", "/a/b/c"]);
  expect(directoriesBetween("/a", "/a/b")).toEqual([]);
  expect(directoriesBetween("/", "/a/b")).toEqual(["/a"]);
  expect(directoriesBetween("/x", "/a/b")).toEqual([]);
});

it("a path is as deep as it has names", () => {
  expect([depth("/"), depth("/a"), depth("/a/b")]).toEqual([0, 1, 2]);
});
