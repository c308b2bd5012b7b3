import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CopiedChanges } from "../../../../src/sandbox/changes/copied-changes.js";
import type { TakeRequest } from "../../../../src/sandbox/points/tree-points.js";
import { openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { added, deleted, modified, same } from "../overlay/played-tree.js";
import { type PlayedPoints, playedPoints, storedAt } from "./played-points.js";

const TEN_GIB = 10n * 1024n ** 3n;

async function take({ points }: PlayedPoints, request: Partial<TakeRequest> = {}) {
  return await points.alone(() => points.take({ kind: "call", signal: undefined, ...request }));
}

/** A file of three bytes that was changed at this time. */
const file = (changedNs: bigint, more = {}) => ({ size: 3n, changedNs, ino: 5n, ...more });

const snapshotsIn = (brigHome: string) =>
  existsSync(join(brigHome, "snapshots")) ? readdirSync(join(brigHome, "snapshots")) : [];

describe("a restore point", () => {
  it("is of what has changed since the one before", async () => {
    const played = await playedPoints();
    const { points, tree, brigHome } = played;
    played.has(added("a", file(900n)), deleted("b"));
    tree.contents.set("/merged/a", "one");
    expect((await take(played)).point).toEqual({
      ...{ snapshot: "tree", number: 1, count: 2 },
      changes: [
        { path: "a", change: "added" },
        { path: "b", change: "deleted" },
      ],
    });
    played.has(added("a", file(1150n)), deleted("b"), added("c", file(1150n)));
    tree.contents.set("/merged/a", "two").set("/merged/c", "new");
    expect((await take(played)).point).toMatchObject({
      number: 2,
      changes: [
        { path: "a", change: "modified" },
        { path: "c", change: "added" },
      ],
    });
    expect(points.taken).toMatchObject([
      { kind: "call", restores: null, point: { number: 1 } },
      { kind: "call", restores: null, point: { number: 2 } },
    ]);
    expect([...points.state.keys()]).toEqual(["a", "b", "c"]);
    expect(await storedAt(brigHome, 1)).toEqual(["added a=one", "deleted b"]);
    expect(await storedAt(brigHome)).toEqual(["added a=two", "deleted b", "added c=new"]);
    const { head } = await openSnapshot(brigHome, "tree");
    expect(head).toMatchObject({ version: 1, id: "tree", workspace: "/repo", owner: { pid: process.pid } });
  });

  it("is none where nothing has changed, and stores nothing", async () => {
    const played = await playedPoints();
    expect(await take(played)).toMatchObject({ point: null, isFull: false });
    played.has(same("a", file(1150n)));
    expect((await take(played)).point).toBeNull();
    expect(snapshotsIn(played.brigHome)).toEqual([]);
    played.has(same("a", file(1150n)), added("d", { type: 2, changedNs: 1250n }));
    expect((await take(played)).point).toMatchObject({ number: 1 });
    const { point } = await take(played);
    expect(point).toBeNull();
    expect(played.points.taken).toHaveLength(1);
  });

  it("is none where what was touched is the same as at the last one", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)));
    await take(played);
    played.has(added("a", file(1150n)));
    expect((await take(played)).point).toBeNull();
    expect(await storedAt(played.brigHome)).toEqual(["added a=one"]);
  });

  it("of an undo is taken even then", async () => {
    const played = await playedPoints();
    const { point } = await take(played, { kind: "undo", restores: 0 });
    expect(point).toEqual({ snapshot: "tree", number: 1, count: 0, changes: [] });
    expect(played.points.taken).toMatchObject([{ kind: "undo", restores: 0 }]);
  });

  it("notes what has become as the host's again, and what is gone", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one").set("/merged/b", "two").set("/merged/c", "333");
    played.has(modified("a", file(900n)), added("b", file(900n)), added("c", file(900n)));
    await take(played);
    played.has(same("a", file(1150n)), added("c", file(900n)));
    expect((await take(played)).point?.changes).toEqual([
      { path: "a", change: "modified" },
      { path: "b", change: "deleted" },
    ]);
    expect([...played.points.state.keys()]).toEqual(["c"]);
    expect(await storedAt(played.brigHome)).toEqual(["added c=333"]);
  });

  it("leaves what was removed meanwhile to the next one", async () => {
    const played = await playedPoints();
    played.has(added("a", file(900n)));
    expect((await take(played)).point).toBeNull();
    expect(snapshotsIn(played.brigHome)).toEqual([]);
  });

  it("that fails leaves nothing, and the next one has the same changes", async () => {
    const played = await playedPoints();
    const usual = played.tree.answer;
    played.has(added("a", file(900n)));
    played.tree.answer = (request) => (request.operation === "read" ? { errno: 5 } : usual(request));
    await expect(take(played)).rejects.toMatchObject({ errno: "EIO" });
    expect(snapshotsIn(played.brigHome)).toEqual([]);
    played.tree.answer = usual;
    played.tree.contents.set("/merged/a", "one");
    expect((await take(played)).point).toMatchObject({ number: 1, count: 1 });
    played.tree.answer = (request) => (request.operation === "read" ? { errno: 5 } : usual(request));
    played.has(added("a", file(1250n)), added("b", file(1250n)));
    await expect(take(played)).rejects.toMatchObject({ errno: "EIO" });
    played.tree.answer = usual;
    played.tree.contents.set("/merged/b", "two");
    expect((await take(played)).point?.changes).toEqual([{ path: "b", change: "added" }]);
  });

  it("is not taken once the signal is aborted, nor beside another one", async () => {
    const played = await playedPoints();
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(take(played, { signal })).rejects.toThrow("stop");
    await expect(played.points.alone(async () => 1, { signal })).rejects.toThrow("stop");
    const events: string[] = [];
    const run = (name: string) =>
      played.points.alone(async () => {
        events.push(`begin ${name}`);
        await new Promise((resolve) => setImmediate(resolve));
        events.push(`end ${name}`);
      });
    await Promise.all([run("a"), run("b")]);
    expect(events).toEqual(["begin a", "end a", "begin b", "end b"]);
  });

  it("tells who waits for it how much of it is stored, and when the wait is over", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one").set("/merged/b", "two");
    played.has(added("a", file(900n)), added("b", file(900n)));
    const told: CopiedChanges[] = [];
    const onCopied = (copied: CopiedChanges) => void told.push(copied);
    const none = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0 };
    const waiting = { totalFiles: 2, totalBytes: 6, phase: "waiting" };
    const taking = take(played);
    await played.points.alone(async () => played.points.count(undefined).add([1]), { onCopied });
    await taking;
    expect(told).toEqual([
      { ...none, phase: "waiting" },
      { ...waiting, files: 0, bytes: 0 },
      { ...waiting, files: 1, bytes: 3 },
      { ...waiting, files: 2, bytes: 6 },
      none,
    ]);
    told.length = 0;
    await played.points.alone(async () => undefined, { onCopied });
    expect(told).toEqual([]);
    const stop = new AbortController();
    const again = take(played);
    const stopped = played.points.alone(async () => undefined, { onCopied, signal: stop.signal });
    stop.abort(new Error("stop"));
    await expect(stopped).rejects.toThrow("stop");
    played.points.count(undefined).add([1]);
    await again;
    expect(told).toEqual([{ ...none, phase: "waiting" }]);
  });

  it("cannot be stored where its directory cannot be made", async () => {
    const played = await playedPoints();
    const full = Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" });
    await expect(
      played.points.alone(async () => {
        throw full;
      }),
    ).rejects.toMatchObject({ code: "snapshot.failed" });
  });
});

describe("changes that are too large", () => {
  it("have no restore points until they are smaller, and are warned of once", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one").set("/merged/b", "x");
    played.has(added("a", file(900n)));
    await take(played);
    played.has(added("b", { size: TEN_GIB - 2n, changedNs: 1150n }));
    expect(await take(played)).toMatchObject({ point: null, isFull: true });
    expect((await take(played)).isFull).toBe(true);
    expect(played.warnings).toMatchObject([
      {
        code: "file.too-large",
        message: expect.stringMatching(
          /more than 10.* GiB, so there are no restore points until they are smaller/,
        ),
        hint: expect.stringContaining("remove large files"),
      },
    ]);
    // The last point may be of all that fits.
    expect((await take(played, { kind: "end" })).isFull).toBe(false);
    expect(played.points.taken).toHaveLength(2);
  });

  it("may have all bytes that are left, and not one more", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one").set("/merged/b", "x");
    played.has(added("a", { size: TEN_GIB, changedNs: 900n }), added("d", { type: 2, size: 4096n }));
    expect((await take(played)).isFull).toBe(false);
    const other = await playedPoints();
    other.has(added("a", { size: TEN_GIB + 1n, changedNs: 900n }));
    expect((await take(other)).isFull).toBe(true);
    expect(snapshotsIn(other.brigHome)).toEqual([]);
    await expect(other.points.takeLast()).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining("what was changed since the last restore point was not kept"),
    });
  });
});

describe("the last point", () => {
  it("says how many paths differ, and looks at everything", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)), deleted("b"));
    await take(played);
    expect(await played.points.alone(() => played.points.takeLast())).toBe(2);
    const scans = played.tree.files.requests.filter(({ operation }) => operation === "changes");
    expect(scans.map(({ offset }) => offset)).toEqual([0n, 0n]);
    // What was written a minute ago may be other content by now, and is read again.
    expect(played.tree.done().filter((one) => one === "read /merged/a")).toHaveLength(2);
  });
});

describe("the point of an apply", () => {
  it("has no changes for what was applied, and the new base of it", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)));
    await take(played);
    played.points.changes.setBase(Buffer.from("a"), { state: null, unchangedNs: 4242n });
    played.has();
    const { point } = await take(played, { kind: "applied" });
    expect(point).toMatchObject({ number: 2, changes: [{ path: "a", change: "deleted" }] });
    const snapshot = await openSnapshot(played.brigHome, "tree", { point: 1 });
    for await (const { base } of snapshot.entries()) expect(base.unchangedNs).toBe(4242n);
    const offsets = played.tree.files.requests.filter(({ operation }) => operation === "changes");
    expect(offsets.map(({ offset }) => offset)).toEqual([0n, 0n]);
  });

  it("of another kind has no base of its own", async () => {
    const played = await playedPoints();
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)));
    await take(played);
    played.points.changes.setBase(Buffer.from("a"), { state: null, unchangedNs: 4242n });
    played.has();
    await take(played);
    const snapshot = await openSnapshot(played.brigHome, "tree", { point: 1 });
    for await (const { base } of snapshot.entries()) expect(base.unchangedNs).toBe(50n);
  });
});

describe("a tree that begins with more than the host's files", () => {
  async function started(...records: readonly Buffer[]) {
    const played = await playedPoints();
    const path = Buffer.from("a");
    const now = {
      type: "directory",
      mode: 0o755,
      sizeBytes: 0,
      modifiedNs: 0n,
      changedNs: 0n,
      ino: 1n,
    } as const;
    const start = {
      change: {
        path,
        change: "added",
        now: { ...now, uid: 0, gid: 0, links: 1, rdev: 0n, linkTarget: null },
        before: null,
      },
      ...{ sha256: null, base: { state: null, unchangedNs: 0n }, baseSha256: null },
    } as const;
    let asked = 0;
    played.points.startFrom(async () => {
      asked++;
      return [start];
    });
    played.has(...records);
    return { played, asked: () => asked };
  }

  it("has that as its state 0", async () => {
    const { played, asked } = await started(
      added("a", { type: 2, mode: 0o755, changedNs: 900n }),
      added("b", { type: 2, changedNs: 900n }),
    );
    expect((await take(played)).point?.changes).toEqual([{ path: "b", change: "added" }]);
    expect(await storedAt(played.brigHome, 0)).toEqual(["added a"]);
    expect(await storedAt(played.brigHome, 1)).toEqual(["added a", "added b"]);
    played.has(added("a", { type: 2, mode: 0o755, changedNs: 900n }));
    await take(played);
    expect(asked()).toBe(1);
  });

  it("notices at the first scan what is gone without a trace", async () => {
    const { played, asked } = await started();
    expect((await take(played)).point?.changes).toEqual([{ path: "a", change: "deleted" }]);
    expect(asked()).toBe(1);
    expect(await storedAt(played.brigHome, 1)).toEqual([]);
  });

  it("has no point if it is as it began", async () => {
    const { played } = await started(added("a", { type: 2, mode: 0o755, changedNs: 900n }));
    expect((await take(played)).point).toBeNull();
    expect(snapshotsIn(played.brigHome)).toEqual([]);
  });
});
