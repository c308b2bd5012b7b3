import { describe, expect, it } from "vitest";
import {
  changesSinceFork,
  isSameState,
  stateAtFork,
  statesOf,
} from "../../../../../src/sandbox/changes/fork.js";
import type { SeenChange } from "../../../../../src/sandbox/changes/workspace-change.js";
import { added, deleted, entry, modified, presentState, same } from "../../overlay/played-tree.js";
import { type PlayedFork, playedFork } from "./played-fork.js";

const lineOf = ({ change, path, now, before }: SeenChange) =>
  `${change} ${path.toString("latin1")}: ${before?.type ?? "nothing"}, now ${now?.type ?? "nothing"}`;

async function since(played: PlayedFork, paths?: readonly string[]): Promise<SeenChange[]> {
  return await changesSinceFork(played.fork, { paths });
}

async function linesSince(
  atFork: readonly Buffer[],
  now: readonly Buffer[],
  { paths, withoutRepository = false }: { paths?: string[]; withoutRepository?: boolean } = {},
) {
  return (await since(await playedFork(atFork, { now, withoutRepository }), paths)).map(lineOf);
}

const file = { ino: 5n, size: 2n, changedNs: 3n };
const taken = { ...file, ino: 1005n };

describe("what was changed since a fork", () => {
  it("is everything, of a parent that had changed nothing", async () => {
    expect(await linesSince([], [added("a"), deleted("b"), modified("c"), same("d")])).toEqual([
      "added a: nothing, now file",
      "deleted b: file, now nothing",
      "modified c: file, now file",
    ]);
  });

  it("is nothing, of a fork that has only what its parent had", async () => {
    const directory = { type: 2, mode: 0o755 };
    const atFork = [
      added("a", file),
      deleted("b"),
      added("d", { ...directory, ino: 7n }),
      added("l", { ...file, type: 3, target: "to" }),
    ];
    const now = [
      added("a", taken),
      deleted("b"),
      added("d", { ...directory, ino: 8n, changedNs: 99n }),
      added("l", { ...taken, type: 3, target: "to" }),
    ];
    expect(await linesSince(atFork, now)).toEqual([]);
  });

  it.each([
    ["another file", { ino: 9n }],
    ["another size", { size: 9n }],
    ["another time", { changedNs: 9n }],
  ])("is a file that the parent had, too, with %s", async (_name, other) => {
    expect(await linesSince([added("a", file)], [added("a", { ...taken, ...other })])).toEqual([
      "added a: nothing, now file",
    ]);
  });

  it("is a directory with another mode, or where the parent had something else", async () => {
    const directory = { type: 2, mode: 0o755 };
    expect(
      await linesSince(
        [added("a", directory), added("b", file), deleted("c")],
        [added("a", { ...directory, mode: 0o700 }), added("b", directory), added("c", directory)],
      ),
    ).toEqual([
      "added a: nothing, now directory",
      "added b: nothing, now directory",
      "added c: nothing, now directory",
    ]);
  });

  it("is a path that the fork has removed, and the parent had not", async () => {
    expect(await linesSince([modified("a", file)], [deleted("a")])).toEqual(["deleted a: file, now nothing"]);
    expect(await linesSince([deleted("d", { type: 2 })], [deleted("d", { type: 2 })])).toEqual([]);
    // The fork has made the directory again, but not what the host has in it.
    const played = await playedFork([deleted("d", { type: 2 })], { now: [deleted("d/x")] });
    played.tree.lists.set("/merged/d", []);
    expect((await since(played)).map(lineOf)).toEqual(["modified d: directory, now directory"]);
  });

  it("is what the fork has made as on the host again", async () => {
    const [one, none] = await since(
      await playedFork([modified("a", { ...file, uid: 3, gid: 4 }, { ...file, ino: 6n, mode: 0o600 })], {
        now: [],
      }),
    );
    expect(none).toBeUndefined();
    expect(one).toMatchObject({
      ...{ change: "modified", before: { ino: 6n }, base: { state: { ino: 6n } } },
      now: { type: "file", mode: 0o600, ino: 6n, uid: 3, gid: 4, links: 1, rdev: 0n, linkTarget: null },
    });
    expect(await linesSince([modified("a", file)], [same("a")])).toEqual(["modified a: file, now file"]);
  });

  it("has no known owner of what the parent had removed and the fork has made as on the host again", async () => {
    const played = await playedFork([deleted("a", { ino: 6n })], { now: [] });
    expect(await since(played)).toMatchObject([
      { change: "modified", now: { uid: 0xffff_ffff, gid: 0xffff_ffff, ino: 6n } },
    ]);
  });

  it("has the target of a link that is as on the host again", async () => {
    const played = await playedFork([modified("l", file, { type: 3 })], { now: [] });
    played.tree.stats.set("/base/l", { type: 3, target: Buffer.from("to") });
    expect(await since(played)).toMatchObject([{ now: { type: "symlink", linkTarget: Buffer.from("to") } }]);
  });

  it("is the removal of what only the parent had", async () => {
    const [one] = await since(await playedFork([added("a", { ...file, uid: 3 })], { now: [] }));
    expect(one).toMatchObject({
      ...{ change: "deleted", now: null, base: { state: null } },
      before: { type: "file", ino: 5n, dev: 0n },
    });
  });

  it("is one removal for a directory with all that was in it", async () => {
    const directory = { type: 2, mode: 0o755 };
    const atFork = [added("d", directory), added("d/e", directory), added("d/e/f"), added("d2")];
    expect(await linesSince(atFork, [])).toEqual([
      "deleted d: directory, now nothing",
      "deleted d2: file, now nothing",
    ]);
    expect(await linesSince(atFork, [added("d", taken)])).toEqual([
      "added d: nothing, now file",
      "deleted d2: file, now nothing",
    ]);
  });

  it("is a file made as on the host in a directory that the parent had removed", async () => {
    const played = await playedFork([deleted("d", { type: 2 })], {
      now: [same("d/a", { ino: 3n }, { ino: 4n, changedNs: 7n })],
    });
    played.tree.stats.set("/merged/d", {
      type: 2,
      mode: 0o750,
      uid: 1,
      gid: 2,
      ino: 8n,
      modifiedNs: 4_000_000n,
    });
    played.tree.lists.set("/merged/d", []);
    const found = await since(played);
    expect(found.map(lineOf)).toEqual([
      "modified d: directory, now directory",
      "modified d/a: file, now file",
    ]);
    const [directory, inside] = found;
    expect(inside).toMatchObject({ now: { ino: 3n }, base: { state: { ino: 4n }, unchangedNs: 7n } });
    // What the parent had removed is made again as it was on the host.
    expect(directory).toMatchObject({ now: { type: "directory" }, before: { type: "directory" } });
  });

  it("has the directories above and below that no scan reports", async () => {
    const played = await playedFork([deleted("d", { type: 2, mode: 0o755 })], { now: [added("d/e/f/g")] });
    for (const [path, mode] of [
      ["d", 0o700],
      ["d/e", 0o701],
      ["d/e/f", 0o702],
      ["d/x", 0o703],
      ["d/x/y", 0o704],
    ] as const)
      played.tree.stats.set(`/merged/${path}`, { type: 2, mode, modifiedNs: 5_000_000n });
    played.tree.lists.set("/merged/d", [entry(2, "e"), entry(2, "x"), entry(1, "file")]);
    played.tree.lists.set("/merged/d/e", [entry(2, "f")]);
    played.tree.lists.set("/merged/d/e/f", [entry(1, "g")]);
    played.tree.lists.set("/merged/d/x", [entry(2, "y")]);
    played.tree.lists.set("/merged/d/x/y", []);
    const found = await since(played);
    expect(found.map(({ path, now }) => `${path} ${now?.mode.toString(8)}`)).toEqual([
      ...["d 755", "d/e 701", "d/e/f 702", "d/e/f/g 644", "d/x 703", "d/x/y 704"],
    ]);
    expect(found[1]).toMatchObject({
      change: "modified",
      before: { mode: 0o701, dev: 0n },
      base: { state: { mode: 0o701 }, unchangedNs: 5_000_000n },
    });
  });

  it("is only of the paths that were asked for, and never a stage", async () => {
    const now = [added(".brig-stage-1/x"), added(".git/x"), added("a"), added("b")];
    expect(await linesSince([], now)).toHaveLength(3);
    expect(await linesSince([], now, { paths: ["b"] })).toEqual(["added b: nothing, now file"]);
    expect(await linesSince([], now, { withoutRepository: true })).toHaveLength(2);
    await expect(linesSince([], now, { paths: ["/other"] })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("is in the order of the bytes", async () => {
    const atFork = [added("a", file), added("c", file)];
    expect((await linesSince(atFork, [added("b"), added("\xff")])).map((line) => line.split(":")[0])).toEqual(
      ["deleted a", "added b", "deleted c", "added \xff"],
    );
  });

  it("counts as seen, and cannot be found out once the signal is aborted", async () => {
    const played = await playedFork([], { now: [] });
    played.tree.scans = [{ records: [], startedNs: 123n }];
    await since(played);
    expect(played.fork.changes.scannedNs).toBe(123n);
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(changesSinceFork(played.fork, { signal })).rejects.toThrow("stop");
  });
});

describe("the states of paths", () => {
  it("are those that differ, nothing below what is no directory, and the host's", () => {
    const directory = presentState({ type: "directory" });
    const states = statesOf(
      new Map([
        ["d", directory],
        ["f", presentState()],
        ["gone", null],
      ]),
    );
    const of = (path: string) => states(Buffer.from(path));
    expect(of("d")).toBe(directory);
    expect(of("f")).toEqual(presentState());
    expect([of("gone"), of("gone/x"), of("f/x/y")]).toEqual([null, null, null]);
    expect([of("other"), of("d/x"), of("gones")]).toEqual([undefined, undefined, undefined]);
    const change = { now: null } as SeenChange;
    expect(stateAtFork({ entries: new Map([["a", change]]) })(Buffer.from("a"))).toBeNull();
  });

  it("are the same if nothing differs by which a file is known", () => {
    const one = presentState({ ino: 1n, changedNs: 2n, sizeBytes: 3 });
    expect(isSameState(one, { ...one, mode: 0o600 } as never)).toBe(true);
    expect(isSameState(one, { ...one, ino: 9n })).toBe(false);
    expect(isSameState(one, { ...one, changedNs: 9n })).toBe(false);
    expect(isSameState(one, { ...one, sizeBytes: 9 })).toBe(false);
    const directory = presentState({ type: "directory" });
    expect(isSameState(directory, { ...directory, ino: 9n })).toBe(true);
    expect(isSameState(directory, one)).toBe(false);
    expect([isSameState(null, null), isSameState(undefined, undefined)]).toEqual([true, true]);
    expect([isSameState(null, undefined), isSameState(one, null), isSameState(undefined, one)]).toEqual([
      false,
      false,
      false,
    ]);
  });
});
