import { describe, expect, it } from "vitest";
import { restoreInPlace, undoLast } from "../../../../src/sandbox/points/sandbox-points.js";
import { commitResult } from "../channel/played-files.js";
import { added, deleted, modified } from "../overlay/played-tree.js";
import { type PlayedPoints, playedPoints, storedAt } from "./played-points.js";

const signal = undefined;
/** Later than every scan in these tests, so that no file is taken for unchanged. */
const file = (changedNs: bigint, more = {}) => ({ size: 3n, changedNs, ino: 5n, ...more });

async function take({ points }: PlayedPoints) {
  return (await points.alone(() => points.take({ kind: "call", signal }))).point;
}

async function restore({ points }: PlayedPoints, number: number, always = false) {
  return await points.alone(() => restoreInPlace(points, { number, always, signal }));
}

async function undo({ points }: PlayedPoints) {
  return await points.alone(() => undoLast(points, { signal }));
}

/** What was committed to the tree, and the contents. */
const committed = ({ tree }: PlayedPoints) =>
  tree
    .committed()
    .map(({ action, path, expects, content }) =>
      action === "put" ? `put ${path}=${tree.staged()[content]} ${expects}` : `${action} ${path} ${expects}`,
    );

/** A tree with two points: first "a" is one, then it is two, and "b" is there. */
async function twoPoints(): Promise<PlayedPoints> {
  const played = await playedPoints();
  played.tree.contents.set("/merged/a", "one");
  played.has(added("a", file(900n)));
  await take(played);
  played.tree.contents.set("/merged/a", "two").set("/merged/b", "new");
  played.has(added("a", file(1150n, { ino: 6n })), added("b", file(1150n, { ino: 7n })));
  await take(played);
  return played;
}

describe("a restore in place", () => {
  it("commits what differs from the point, expects what the last scan has found, and is a point itself", async () => {
    const played = await twoPoints();
    const restoring = restore(played, 1);
    expect(await restoring).toMatchObject({ number: 3, snapshot: "tree" });
    expect(committed(played)).toEqual(["put a=one state file 6", "remove b state file 7"]);
    expect(played.points.taken.at(-1)).toMatchObject({ kind: "undo", restores: 1 });
    expect(played.tree.committed()[0]).toMatchObject({ mode: 0o644, owner: "0:0" });
  });

  it("of the state at the start removes what was added", async () => {
    const played = await twoPoints();
    await restore(played, 0);
    expect(committed(played)).toEqual(["remove a state file 6", "remove b state file 7"]);
    expect(played.points.taken.at(-1)).toMatchObject({ kind: "undo", restores: 0 });
  });

  it("does nothing where nothing differs, unless a point is wanted", async () => {
    const played = await twoPoints();
    expect(await restore(played, 2)).toBeNull();
    expect(played.tree.committed()).toEqual([]);
    expect(await restore(played, 2, true)).toMatchObject({ number: 3, count: 0 });
  });

  it("of the start does nothing without any point", async () => {
    const played = await playedPoints();
    expect(await restore(played, 0, true)).toBeNull();
    expect(played.tree.done().every((one) => one.startsWith("changes"))).toBe(true);
  });

  it("keeps what was not a point yet, and scans again after that", async () => {
    const played = await twoPoints();
    played.tree.contents.set("/merged/c", "333");
    played.has(
      added("a", file(1150n, { ino: 6n })),
      added("b", file(1150n, { ino: 7n })),
      added("c", file(1250n, { ino: 8n })),
    );
    await restore(played, 2);
    expect(played.points.taken.map(({ kind }) => kind)).toEqual(["call", "call", "call", "undo"]);
    expect(await storedAt(played.brigHome, 3)).toContain("added c=333");
    expect(committed(played)).toEqual(["remove c state file 8"]);
    const scans = played.tree.done().filter((one) => one === "changes /merged").length;
    expect(scans).toBeGreaterThanOrEqual(5);
  });

  it("of a point that there is not is refused", async () => {
    const played = await twoPoints();
    await expect(restore(played, 3)).rejects.toMatchObject({ code: "snapshot.unknown" });
    expect(played.tree.committed()).toEqual([]);
  });

  it("changes nothing if something has changed meanwhile", async () => {
    const played = await twoPoints();
    const usual = played.tree.answer;
    const conflicts = (list: readonly (readonly [number, number])[]) => {
      played.tree.answer = (request) =>
        request.operation === "commit" ? { result: commitResult({ conflicts: list }) } : usual(request);
    };
    conflicts([[0, 4]]);
    await expect(restore(played, 1)).rejects.toMatchObject({
      code: "workspace.conflict",
      message:
        'restore point 1 was not restored, and nothing was changed: "a": it, or something in it, was changed meanwhile',
      hint: expect.stringContaining("wait until no program writes"),
    });
    conflicts([
      [0, 4],
      [1, 1],
    ]);
    await expect(restore(played, 1)).rejects.toMatchObject({
      message: expect.stringMatching(/ \(and 1 more\)$/),
    });
    expect(played.points.taken).toHaveLength(2);
  });

  it("expects of a directory to be removed that nothing in it has changed since the scan", async () => {
    const played = await playedPoints();
    await take(played);
    played.tree.contents.set("/merged/f", "x");
    played.has(added("f", file(1150n)));
    await take(played);
    played.has(added("d", { type: 2, changedNs: 1250n, ino: 9n }), added("f", file(1150n)));
    await take(played);
    played.has(added("d", { type: 2, changedNs: 1350n, mode: 0o700, ino: 9n }), added("f", file(1150n)));
    await take(played);
    await restore(played, 2);
    expect(committed(played)).toEqual(["mkdir d state directory 9"]);
    await restore(played, 1);
    expect(committed(played).at(-1)).toMatch(/^remove d older directory \d+99$/);
  });

  it("expects nothing where nothing is, and looks at what was never touched", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)), modified("h", file(900n), { ino: 4n }));
    played.tree.contents.set("/merged/h", "hhh");
    await take(played);
    played.has(deleted("h", { ino: 4n }));
    await take(played);
    played.tree.stats.set("/merged/h", { type: 1 });
    await restore(played, 1);
    expect(committed(played)).toEqual(["put a=one absent", "put h=hhh absent"]);
  });

  it("is not done if the state that would be lost is too large to be kept", async () => {
    const played = await twoPoints();
    played.has(added("large", { size: 10n * 1024n ** 3n, changedNs: 1250n }));
    await expect(restore(played, 1)).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining("the state that would be lost cannot be kept"),
    });
    await expect(undo(played)).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining("the state that would be lost cannot be kept"),
    });
    expect(played.tree.committed()).toEqual([]);
  });

  it("stops with its signal", async () => {
    const played = await twoPoints();
    const stop = AbortSignal.abort(new Error("stop"));
    const { points } = played;
    const restoring = points.alone(() => restoreInPlace(points, { number: 1, always: false, signal: stop }));
    await expect(restoring).rejects.toThrow("stop");
    await expect(points.alone(() => undoLast(points, { signal: stop }))).rejects.toThrow("stop");
    expect(played.tree.committed()).toEqual([]);
  });
});

describe("an undo", () => {
  it("undoes one call after the other, and then has nothing to undo", async () => {
    const played = await twoPoints();
    const usual = played.tree.answer;
    const restored = [
      () => {
        played.tree.contents.set("/merged/a", "one");
        played.has(added("a", file(5000n, { ino: 8n })));
      },
      () => played.has(),
    ];
    played.tree.answer = (request) => {
      if (request.operation === "commit") restored.shift()?.();
      return usual(request);
    };
    const first = await undo(played);
    expect(first).toMatchObject({ undone: { number: 2 }, restores: 1, point: { number: 3, count: 2 } });
    const second = await undo(played);
    expect(second).toMatchObject({ undone: { number: 1 }, restores: 0, point: { number: 4, count: 1 } });
    expect(await undo(played)).toBeNull();
    expect(await storedAt(played.brigHome)).toEqual([]);
  });

  it("undoes first what was not a point yet", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)));
    expect(await undo(played)).toMatchObject({
      undone: { number: 1, count: 1 },
      restores: 0,
      point: { number: 2 },
    });
    expect(committed(played)).toEqual(["remove a state file 5"]);
  });

  it("of nothing is nothing", async () => {
    const played = await playedPoints();
    expect(await undo(played)).toBeNull();
    expect(played.points.taken).toEqual([]);
  });

  it("passes over points of applies", async () => {
    const played = await twoPoints();
    played.tree.contents.set("/merged/c", "ccc");
    played.has(added("c", file(1350n)));
    await played.points.alone(() => played.points.take({ kind: "applied", signal }));
    expect(played.points.taken.map(({ kind }) => kind)).toEqual(["call", "call", "applied"]);
    expect(await undo(played)).toMatchObject({ undone: { number: 2 }, restores: 1 });
  });
});
