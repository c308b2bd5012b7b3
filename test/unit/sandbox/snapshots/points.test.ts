import { appendFile, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { PointEntry } from "../../../../src/sandbox/snapshots/point-log.js";
import {
  createSnapshot,
  describeSnapshot,
  openPointLog,
  openSnapshot,
} from "../../../../src/sandbox/snapshots/snapshot-store.js";
import type { BaseState, PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { someCuts } from "../../../support/cuts.js";

let home = "";
const log = () => join(home, "snapshots", "tree", "points.jsonl");

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "brig-points-"));
});

afterEach(async () => {
  await rm(home, { recursive: true });
});

const state = { type: "file", mode: 0o644, sizeBytes: 5, modifiedNs: -1n, changedNs: 3n, ino: 7n } as const;
const now: PresentState = { ...state, uid: 1000, gid: 1001, links: 1, rdev: 0n, linkTarget: null };
const before: BaseState = { ...state, dev: 3n };
const base = { state: before, unchangedNs: 5n };
const [A, B, C] = ["a", "b", "c"].map((letter) => letter.repeat(64)) as [string, string, string];

function modified(path: string | Buffer, sha256: string): ManifestEntry {
  const change = { path: Buffer.from(path), change: "modified", now, before } as const;
  return { change, sha256, base, baseSha256: C };
}

function added(path: string, sha256: string): ManifestEntry {
  const change = { path: Buffer.from(path), change: "added", now, before: null } as const;
  return { change, sha256, base: { state: null, unchangedNs: 5n }, baseSha256: null };
}

function same(path: string): PointEntry {
  return { path: Buffer.from(path), same: true };
}

const at = "2026-01-02T03:04:05.678Z";

async function write(points: readonly (readonly PointEntry[])[], start: readonly ManifestEntry[] = []) {
  {
    await using writer = await createSnapshot(home, {
      version: 1,
      id: "tree",
      workspace: "/repo",
      createdAt: at,
    });
    for (const entry of start) await writer.add(entry);
    await writer.addPoint({ at, kind: "call" }, points[0] ?? []);
    await writer.finish();
  }
  const { points: opened } = await openPointLog(home, "tree");
  for (const entries of points.slice(1)) {
    const isApplied = entries.some((entry) => "same" in entry && entry.base);
    await opened.append({ at, kind: isApplied ? "applied" : "call" }, entries);
  }
}

/** The paths of a state and their contents, and those that a later point has changed. */
async function read(point?: number) {
  const snapshot = await openSnapshot(home, "tree", { point });
  const entries: string[] = [];
  for await (const { change, sha256 } of snapshot.entries())
    entries.push(`${change.path.toString("latin1")}=${sha256?.[0]}`);
  const bases = snapshot.bases.map(
    ({ path, state, baseSha256 }) => `${path}=${state?.type ?? "nothing"} ${baseSha256?.[0]}`,
  );
  return { entries, bases, points: snapshot.points.length };
}

describe("the points of a tree", () => {
  it("are states of their own, and what came later was the host's", async () => {
    await write(
      [[modified("x", A)], [modified("x", B), added("y", A)], [same("x"), added("z", B)]],
      [modified("s", A)],
    );
    expect(await read(0)).toEqual({
      entries: ["s=a"],
      bases: ["x=file c", "y=nothing undefined", "z=nothing undefined"],
      points: 3,
    });
    expect(await read(1)).toMatchObject({
      entries: ["s=a", "x=a"],
      bases: ["y=nothing undefined", "z=nothing undefined"],
    });
    expect(await read(2)).toMatchObject({ entries: ["s=a", "x=b", "y=a"], bases: ["z=nothing undefined"] });
    expect(await read(3)).toEqual({ entries: ["s=a", "y=a", "z=b"], bases: ["x=file c"], points: 3 });
  });

  it("are read up to the last one, with the host's own version of what does not differ", async () => {
    await write([[modified("x", A)], [same("x"), added("z", B)]]);
    expect(await read()).toEqual({ entries: ["z=b"], bases: [], points: 2 });
  });

  it("have the base of the first change after an apply", async () => {
    const later = {
      ...modified("x", B),
      base: { state: { ...before, ino: 9n }, unchangedNs: 6n },
      baseSha256: B,
    };
    const applied: PointEntry = { path: Buffer.from("x"), same: true, base };
    await write([[modified("x", A)], [applied], [later]]);
    expect((await read(0)).bases).toEqual(["x=file c"]);
    expect((await read(2)).bases).toEqual(["x=file b"]);
  });

  it("know what a path was applied to since", async () => {
    const applied = { state: { ...before, ino: 99n }, unchangedNs: 8n };
    await write([[modified("x", A)], [{ path: Buffer.from("x"), same: true, base: applied }]]);
    const [entry] = await all((await openSnapshot(home, "tree", { point: 1 })).entries());
    expect(entry?.base).toEqual(applied);
    expect((await openSnapshot(home, "tree", { point: 0 })).bases).toMatchObject([
      { state: before, hostBase: applied },
    ]);
  });

  it("keep names that are not UTF-8, and hold line breaks", async () => {
    const path = Buffer.from([0x66, 0xff, 0x0a]);
    await write([[modified(path, A)], [{ path, same: true }]]);
    expect(await read(1)).toMatchObject({ entries: ["f\xff\n=a"] });
    expect(await read(2)).toMatchObject({ entries: [] });
  });

  it.each([-1, 3, 1.5, Number.NaN])("have none of the number %d", async (point) => {
    await write([[], []]);
    await expect(read(point)).rejects.toMatchObject({ code: "snapshot.unknown" });
  });

  it("of a state without points is 0 alone", async () => {
    {
      await using writer = await createSnapshot(home, {
        version: 1,
        id: "tree",
        workspace: "/repo",
        createdAt: at,
      });
      await writer.add(modified("x", A));
      await writer.finish();
    }
    expect(await read(0)).toEqual({ entries: ["x=a"], bases: [], points: 0 });
    await expect(read(1)).rejects.toMatchObject({
      code: "snapshot.unknown",
      message: expect.stringContaining("none"),
    });
    expect(await describeSnapshot(home, "tree")).toMatchObject({ changedAt: at });
  });
});

describe("a log that was cut off", () => {
  it("at any byte has the points before, and takes new ones", async () => {
    await write([[same("x")], [same("y"), same("z")], [], [same("y")]], [modified("x", A)]);
    const whole = await readFile(log());
    const ends = wholePoints(whole.toString());
    // Around the ends of lines, where it is decided what counts, and at some of the others: at all of them in `npm run test:deep`.
    const { cuts, seed } = someCuts(whole.length, lineEnds(whole));
    for (const length of cuts) {
      const where = `cut off at byte ${length}, BRIG_TEST_SEED=${seed}`;
      await writeFile(log(), whole);
      await truncate(log(), length);
      const count = ends.filter((end) => end <= length).length;
      expect((await read()).points, where).toBe(count);
      const { points } = await openPointLog(home, "tree");
      expect(await points.append({ at, kind: "call" }, [added("new", A)]), where).toMatchObject({
        point: count + 1,
      });
      const again = await read();
      expect(again.points, where).toBe(count + 1);
      expect(again.entries, where).toContain("new=a");
    }
  });

  it("while it is open loses only what was not whole", async () => {
    await write([[modified("x", A)]]);
    const { points } = await openPointLog(home, "tree");
    await appendFile(log(), '{"point":2,"at":"');
    await points.append({ at, kind: "undo", restores: 0 }, []);
    expect((await openSnapshot(home, "tree")).points).toEqual([
      { point: 1, at, kind: "call", entries: 1 },
      { point: 2, at, kind: "undo", restores: 0, entries: 0 },
    ]);
  });
});

it.each([
  ["no JSON", "nonsense"],
  ["a number out of order", `{"point":9,"at":"${at}","kind":"call","entries":0}`],
  ["an unknown kind", `{"point":2,"at":"${at}","kind":"other","entries":0}`],
  ["a line without an end", "x".repeat(300_000)],
])("a log with %s is damaged", async (_name, line) => {
  await write([[modified("x", A)]]);
  await appendFile(log(), `${line}\n`);
  await expect(read()).rejects.toMatchObject({ code: "snapshot.invalid" });
});

function lineEnds(text: Buffer): number[] {
  return [...text.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []));
}

/** Where each point ends. */
function wholePoints(text: string): number[] {
  const ends: number[] = [];
  let [left, bytes] = [0, 0];
  for (const line of text.split("\n").slice(0, -1)) {
    bytes += Buffer.byteLength(line) + 1;
    left = left === 0 ? (JSON.parse(line) as { entries: number }).entries : left - 1;
    if (left === 0) ends.push(bytes);
  }
  return ends;
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of source) list.push(one);
  return list;
}
