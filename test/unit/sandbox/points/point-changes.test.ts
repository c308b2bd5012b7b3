import { describe, expect, it } from "vitest";
import { summarise } from "../../../../src/sandbox/points/tree-points.js";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { PointEntry } from "../../../../src/sandbox/snapshots/point-log.js";
import { baseState, presentState } from "../overlay/played-tree.js";

const bytes = (path: string) => Buffer.from(path, "latin1");
const base = { state: null, unchangedNs: 0n };
const add = (path: string) =>
  ({
    change: { path: bytes(path), change: "added", now: presentState(), before: null },
    sha256: null,
    base,
  }) as ManifestEntry;
const modify = (path: string) =>
  ({
    change: { path: bytes(path), change: "modified", now: presentState(), before: baseState() },
    sha256: null,
    base,
  }) as ManifestEntry;
const remove = (path: string) =>
  ({
    change: { path: bytes(path), change: "deleted", now: null, before: baseState() },
    sha256: null,
    base,
  }) as ManifestEntry;
const same = (path: string): PointEntry => ({ path: bytes(path), same: true });

function summary(entries: readonly PointEntry[], before: readonly ManifestEntry[] = []) {
  const known = new Map(before.map((entry) => [entry.change.path.toString("latin1"), entry]));
  const { count, changes } = summarise(entries, known);
  return { count, changes: changes.map(({ path, change }) => `${change} ${path}`) };
}

describe("the changes of a point", () => {
  it.each<[string, PointEntry, ManifestEntry | undefined, string[]]>([
    ["an addition", add("a"), undefined, ["added a"]],
    ["a change", modify("a"), undefined, ["modified a"]],
    ["a removal", remove("a"), undefined, ["deleted a"]],
    ["a further change of what was added", add("a"), add("a"), ["modified a"]],
    ["a removal of what was changed", remove("a"), modify("a"), ["deleted a"]],
    ["a file where one was removed", modify("a"), remove("a"), ["added a"]],
    ["what is as on the host again", same("a"), modify("a"), ["modified a"]],
    ["what was added and is gone", same("a"), add("a"), ["deleted a"]],
    ["what was removed and is back", same("a"), remove("a"), ["added a"]],
    ["what never was there", same("a"), undefined, []],
  ])("are since the one before: %s", (_name, entry, before, expected) => {
    expect(summary([entry], before === undefined ? [] : [before])).toEqual({
      count: expected.length,
      changes: expected,
    });
  });

  it("name a repository once, and modified unless it is all of it", () => {
    expect(summary([add(".git/a"), remove(".git/b"), add("a")])).toEqual({
      count: 2,
      changes: ["modified .git", "added a"],
    });
    expect(summary([add(".git"), add(".git/a")])).toEqual({ count: 1, changes: ["added .git"] });
    expect(summary([remove(".git")])).toEqual({ count: 1, changes: ["deleted .git"] });
  });

  it("do not name what was in a removed directory", () => {
    const before = ["d", "d/a", "d2"].map(add);
    expect(summary(["d", "d/a", "d/b/c", "d2"].map(same), before)).toEqual({
      count: 2,
      changes: ["deleted d", "deleted d2"],
    });
  });

  it("are counted, and the first hundred named", () => {
    const many = Array.from({ length: 103 }, (_, at) => add(`f${String(at).padStart(3, "0")}`));
    const { count, changes } = summary(many);
    expect([count, changes.length, changes.at(-1)]).toEqual([103, 100, "added f099"]);
  });

  it("have names with the bytes replaced that are not UTF-8", () => {
    expect(summary([add("\xc3\xbc\xff")]).changes).toEqual(["added ü\ufffd"]);
  });
});
