import { describe, expect, it } from "vitest";
import { findTmpfsParents } from "../../../../src/sandbox/plan/plan-sandbox.js";

const parents = (roots: readonly string[], ...tmpfs: string[]) =>
  findTmpfsParents(
    roots,
    tmpfs.map((path) => ({ path })),
  );

describe("the directories between one in memory and a directory of the host below it", () => {
  it("are held by the outermost of them", () => {
    expect(parents(["/tmp/a/b/c"], "/tmp")).toEqual(["/tmp/a"]);
    expect(parents(["/tmp/a/b"], "/tmp")).toEqual(["/tmp/a"]);
  });

  it("are none where there is nothing between", () => {
    expect(parents(["/tmp/a"], "/tmp")).toEqual([]);
    expect(parents(["/tmp"], "/tmp")).toEqual([]);
    expect(parents(["/home/a/b"], "/tmp", "/run")).toEqual([]);
    expect(parents(["/tmpfile/a/b"], "/tmp")).toEqual([]);
    expect(parents([], "/tmp")).toEqual([]);
    expect(parents(["/tmp/a/b"])).toEqual([]);
  });

  it("are counted from the innermost that is in memory, in whatever order they are named", () => {
    expect(parents(["/tmp/cache/a/b"], "/tmp", "/tmp/cache")).toEqual(["/tmp/cache/a"]);
    expect(parents(["/tmp/cache/a/b"], "/tmp/cache", "/tmp")).toEqual(["/tmp/cache/a"]);
    expect(parents(["/tmp/cache/a"], "/tmp", "/tmp/cache")).toEqual([]);
  });

  it("are named once for several that lie in the same", () => {
    expect(parents(["/tmp/a/one", "/tmp/a/two", "/tmp/b/c"], "/tmp")).toEqual(["/tmp/a", "/tmp/b"]);
  });

  it("are none that are a directory of the host themselves, or lie in one", () => {
    expect(parents(["/tmp/a", "/tmp/a/b/c"], "/tmp")).toEqual([]);
    expect(parents(["/tmp/a/b/c", "/tmp/a"], "/tmp")).toEqual([]);
    expect(parents(["/tmp/ab", "/tmp/a/b"], "/tmp")).toEqual(["/tmp/a"]);
  });
});
