import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import {
  entryLine,
  type ManifestEntry,
  type ManifestHead,
} from "../../../../src/sandbox/snapshots/manifest.js";
import {
  createSnapshot,
  listSnapshots,
  openSnapshot,
  removeSnapshot,
  removeUnfinishedSnapshots,
} from "../../../../src/sandbox/snapshots/snapshot-store.js";
import type { BaseState, PresentState } from "../../../../src/sandbox/tree/tree-changes.js";

let home = "";

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "brig-snapshots-"));
});

afterEach(async () => {
  await rm(home, { recursive: true });
});

const head = (id: string): ManifestHead => ({
  version: 1,
  id,
  workspace: "/repo",
  createdAt: "2026-01-02T03:04:05.678Z",
});
const state = { type: "file", mode: 0o644, sizeBytes: 5, modifiedNs: -1n, changedNs: 3n, ino: 7n } as const;
const now: PresentState = { ...state, uid: 1000, gid: 1000, links: 2, rdev: 0n, linkTarget: null };
const before: BaseState = { ...state, dev: 2n ** 63n };
const entries: ManifestEntry[] = [
  {
    change: { path: Buffer.from("a"), change: "modified", now, before },
    sha256: "a".repeat(64),
    base: { state: { ...before, ino: 8n }, unchangedNs: 5n },
  },
  {
    change: {
      path: Buffer.from([0x62, 0xff, 0x0a]),
      change: "deleted",
      now: null,
      before,
    },
    sha256: null,
    base: { state: "unknown", unchangedNs: 6n },
  },
  {
    change: {
      path: Buffer.from("link"),
      change: "added",
      now: { ...now, type: "symlink", linkTarget: Buffer.from([0xfe]) },
      before: null,
    },
    sha256: null,
    base: { state: null, unchangedNs: 7n },
  },
];
const [modified] = entries as [ManifestEntry];

async function write(id: string, given: readonly ManifestEntry[] = entries) {
  await using writer = await createSnapshot(home, head(id));
  for (const entry of given) await writer.add(entry);
  return await writer.finish();
}

const names = () => readdir(join(home, "snapshots"));
const unknown = expect.objectContaining({ code: "snapshot.unknown" });
const invalid = expect.objectContaining({ code: "snapshot.invalid" });
async function read(id: string) {
  const all: ManifestEntry[] = [];
  for await (const entry of (await openSnapshot(home, id)).entries()) all.push(entry);
  return all;
}

describe("a snapshot", () => {
  it("gives back its head and every entry, with names that are not UTF-8", async () => {
    await write("one");
    expect((await openSnapshot(home, "one")).head).toEqual(head("one"));
    expect(await read("one")).toEqual(entries);
  });

  it("keeps more entries than fit into one write, in order", async () => {
    const many = Array.from({ length: 3_000 }, (_, at) => ({
      ...modified,
      change: { ...modified.change, path: Buffer.from(`f${at}`) },
    }));
    await write("many", many);
    expect(await read("many")).toEqual(many);
  });

  it("does not exist before it is finished, and leaves nothing if it never is", async () => {
    {
      await using writer = await createSnapshot(home, head("half"));
      await writer.contents.add(Buffer.from("x"));
      await expect(openSnapshot(home, "half")).rejects.toEqual(unknown);
      expect(await listSnapshots(home)).toEqual([]);
    }
    expect(await names()).toEqual([]);
  });

  it("takes the place of an earlier one of its name", async () => {
    await write("again");
    await write("again", []);
    expect(await read("again")).toEqual([]);
    expect(await names()).toEqual(["again"]);
  });

  it("is removed whole", async () => {
    await write("gone");
    await removeSnapshot(home, "gone");
    await removeSnapshot(home, "gone");
    await expect(openSnapshot(home, "gone")).rejects.toEqual(unknown);
    expect(await names()).toEqual([]);
  });
});

it("lists no snapshots where there never was one", async () => {
  expect(await listSnapshots(home)).toEqual([]);
});

it.each(["", ".", "..", "../x", "a/b", ".hidden", "a".repeat(200), "x\0y"])("%j is no id", async (id) => {
  await expect(openSnapshot(home, id)).rejects.toEqual(unknown);
  await expect(createSnapshot(home, head(id))).rejects.toEqual(unknown);
  await expect(removeSnapshot(home, id)).rejects.toEqual(unknown);
});

describe("a manifest that is damaged", () => {
  const manifest = () => join(home, "snapshots", "bad", "manifest.jsonl");

  it.each([
    ["is empty", ""],
    ["has a head that is no JSON", "{\n"],
    ["is of another version", '{"version":2,"id":"bad"}\n'],
    ["has a relative workspace", `${JSON.stringify({ ...head("bad"), workspace: "x" })}\n`],
  ])("%s: is not opened", async (_name, text) => {
    await write("bad");
    await writeFile(manifest(), text);
    await expect(openSnapshot(home, "bad")).rejects.toEqual(invalid);
  });

  it.each([
    ["no path", '{"path":1}'],
    ["no JSON", "nonsense"],
    ["an unknown change", '{"path":"x","change":"moved"}'],
    ["a file that is there and deleted", entryLine(modified).replace("modified", "deleted")],
    ["no end", "x".repeat(300_000)],
  ])("has a line with %s: is not read", async (_name, line) => {
    await write("bad");
    await appendFile(manifest(), `${line}\n`);
    await expect(read("bad")).rejects.toEqual(invalid);
  });

  it("is a directory", async () => {
    await mkdir(manifest(), { recursive: true });
    await expect(openSnapshot(home, "bad")).rejects.toEqual(invalid);
  });
});

it("removes what a killed process left unfinished, and nothing of a living one", async () => {
  await using writer = await createSnapshot(home, head("mine"));
  await write("complete");
  const processes = await readHostProcesses(hostname());
  const child = spawn("sleep", ["60"]);
  const left = `.${processes.host}.${child.pid}.00000000-0000-4000-8000-000000000000.new`;
  await mkdir(join(home, "snapshots", left));
  expect(await removeUnfinishedSnapshots(home, processes)).toBe(0);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await removeUnfinishedSnapshots(home, processes)).toBe(1);
  await writer.finish();
  expect(await names()).toEqual(["complete", "mine"]);
});
