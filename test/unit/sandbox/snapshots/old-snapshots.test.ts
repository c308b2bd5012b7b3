import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import { removeOldSnapshots, removeUnfinishedContents } from "../../../../src/sandbox/snapshots/rescued.js";
import { createSnapshot, listSnapshots } from "../../../../src/sandbox/snapshots/snapshot-store.js";

const old = new Date("2026-01-02T03:04:05Z");
const before = new Date("2026-02-01T00:00:00Z");

async function store(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "brig-old-snapshots-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const self = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const ended = { ...self, pid: 2 ** 22 + 1 };
  const heads = [
    { id: "old", createdAt: old, owner: null },
    { id: "old-ended", createdAt: old, owner: ended },
    { id: "old-running", createdAt: old, owner: self },
    { id: "young", createdAt: before, owner: null },
    { id: "damaged", createdAt: old, owner: null },
  ];
  for (const { id, createdAt, owner } of heads) {
    await using writer = await createSnapshot(home, {
      version: 1,
      id,
      workspace: "/work",
      createdAt: createdAt.toISOString(),
      owner,
    });
    await writer.finish();
  }
  writeFileSync(join(home, "snapshots", "damaged", "manifest.jsonl"), "{");
  return home;
}

it("removes old snapshots, but not those that are young, damaged, or still written to", async () => {
  const home = await store();
  const processes = await readHostProcesses(hostname());
  expect(await removeOldSnapshots(home, { before, processes, dryRun: true })).toEqual(["old", "old-ended"]);
  expect(await listSnapshots(home)).toHaveLength(5);
  expect(await removeOldSnapshots(home, { before, processes, dryRun: false })).toEqual(["old", "old-ended"]);
  expect(await listSnapshots(home)).toEqual(["damaged", "old-running", "young"]);
});

it("removes contents that a killed process was writing, and none of a running one", async () => {
  const home = await store();
  const objects = (id: string) => join(home, "snapshots", id, "objects");
  for (const id of ["old", "old-ended", "old-running"]) {
    mkdirSync(join(objects(id), "ab"), { recursive: true });
    for (const name of [".half", "ab/whole"]) writeFileSync(join(objects(id), name), "");
  }
  const processes = await readHostProcesses(hostname());
  expect(await removeUnfinishedContents(home, processes)).toBe(1);
  expect(await removeUnfinishedContents(home, processes)).toBe(0);
  expect(readdirSync(objects("old-ended"), { recursive: true }).toSorted()).toEqual(["ab", "ab/whole"]);
  expect(readdirSync(objects("old-running"))).toContain(".half");
});
