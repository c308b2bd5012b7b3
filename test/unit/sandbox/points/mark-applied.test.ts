import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import { LiveChanges } from "../../../../src/sandbox/changes/live-changes.js";
import { markApplied } from "../../../../src/sandbox/changes/sandbox-changes.js";
import type { ManifestHead } from "../../../../src/sandbox/snapshots/manifest.js";
import { createSnapshot, openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { playedTree, presentState } from "../overlay/played-tree.js";
import { newHome, storedAt } from "./played-points.js";

type Owner = NonNullable<ManifestHead["owner"]>;

async function kept(brigHome: string, owner?: Owner): Promise<void> {
  const head = { version: 1, id: "tree", workspace: "/repo", createdAt: "2026-01-02T03:04:05.678Z" } as const;
  await using writer = await createSnapshot(brigHome, { ...head, ...(owner && { owner }) });
  for (const path of ["a", "b"]) {
    const change = {
      path: Buffer.from(path),
      change: "added",
      now: presentState({ type: "directory" }),
      before: null,
    } as const;
    await writer.add({ change, sha256: null, base: { state: null, unchangedNs: 1n } });
  }
  await writer.finish();
}

async function mark(brigHome: string, ...paths: string[]) {
  const changes = new LiveChanges(await playedTree());
  changes.setBase(Buffer.from("a"), { state: null, unchangedNs: 4242n });
  await markApplied({ brigHome, id: "tree", paths: paths.map((path) => Buffer.from(path)), changes });
}

const pointsOf = async (brigHome: string) => (await openSnapshot(brigHome, "tree")).points;

describe("what was applied of a kept state", () => {
  it("is no change of it any more, and has the host's base", async () => {
    const brigHome = newHome();
    await kept(brigHome);
    await mark(brigHome, "a", "not kept");
    expect(await storedAt(brigHome)).toEqual(["added b"]);
    expect(await pointsOf(brigHome)).toMatchObject([{ kind: "applied", entries: 1 }]);
    const before = await openSnapshot(brigHome, "tree", { point: 0 });
    const bases = [];
    for await (const { change, base } of before.entries())
      bases.push([change.path.toString(), base.unchangedNs]);
    expect(bases).toEqual([
      ["a", 4242n],
      ["b", 1n],
    ]);
    await mark(brigHome, "a");
    expect(await pointsOf(brigHome)).toHaveLength(1);
  });

  it("is not noted if nothing of it was kept", async () => {
    const brigHome = newHome();
    await kept(brigHome);
    await mark(brigHome, "x");
    expect(await pointsOf(brigHome)).toEqual([]);
  });

  it("is not noted while its session goes on, but after that", async () => {
    const brigHome = newHome();
    const processes = await readHostProcesses(hostname());
    await kept(brigHome, await ownerOf(process.pid, processes));
    await mark(brigHome, "a");
    expect(await pointsOf(brigHome)).toEqual([]);
    const child = spawn("sleep", ["60"]);
    const owner = await ownerOf(child.pid ?? 0, processes);
    child.kill("SIGKILL");
    await once(child, "exit");
    await kept(brigHome, owner);
    await mark(brigHome, "a");
    expect(await pointsOf(brigHome)).toHaveLength(1);
  });

  it("is an error if the state is not there", async () => {
    await expect(mark(newHome(), "a")).rejects.toMatchObject({ code: "snapshot.unknown" });
  });
});
