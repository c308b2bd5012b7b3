import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { rescueChanges } from "../../../../src/sandbox/changes/rescue-changes.js";
import {
  keepChanges,
  storeChangesIn,
  undoKilledApplies,
} from "../../../../src/sandbox/changes/sandbox-changes.js";
import type { OpenedSandbox } from "../../../../src/sandbox/open-sandbox.js";
import { takeRestorePoint } from "../../../../src/sandbox/points/sandbox-points.js";
import { noteRescue, readRescues } from "../../../../src/sandbox/snapshots/rescued.js";
import { openSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { added, deleted } from "../overlay/played-tree.js";
import { playedPoints, storedAt } from "../points/played-points.js";
import { newHome } from "./apply/apply-of.js";
import { recordOfKilled } from "./apply/killed-apply.js";
import { opened } from "./opened.js";

const snapshotsIn = (home: string) =>
  existsSync(join(home, "snapshots")) ? readdirSync(join(home, "snapshots")) : [];

describe("the changes of a sandbox that closes", () => {
  it("are kept by the id of its tree, and only if there are any", async () => {
    const { sandbox, tree, brigHome } = await opened();
    tree.scans = [{ records: [deleted("a")] }];
    expect(await keepChanges(sandbox)).toEqual({ snapshot: "tree", workspace: "/repo", count: 1 });
    expect(snapshotsIn(brigHome)).toEqual(["tree"]);
    tree.scans = [{ records: [] }];
    expect(await keepChanges(sandbox)).toBeNull();
    expect(snapshotsIn(brigHome)).toEqual([]);
  });

  it("count what belongs to the repository only where its commits do not arrive", async () => {
    const records = [added(".git", { type: 2 }), added(".git/x", { type: 2 }), deleted("a")];
    for (const [hasBranch, count] of [
      [true, 1],
      [false, 3],
    ] as const) {
      const { sandbox, tree } = await opened({ hasBranch });
      tree.scans = [{ records }];
      expect(await keepChanges(sandbox)).toMatchObject({ count });
    }
    const { sandbox, tree, brigHome } = await opened({ hasBranch: true });
    tree.scans = [{ records: records.slice(0, 2) }];
    expect(await keepChanges(sandbox)).toBeNull();
    expect(snapshotsIn(brigHome)).toEqual([]);
  });

  it("are a last point where there are restore points", async () => {
    for (const [hasBranch, count] of [
      [true, 1],
      [false, 2],
    ] as const) {
      const played = await playedPoints();
      const { sandbox } = await opened({ tree: played.tree, brigHome: played.brigHome, hasBranch });
      played.has(deleted("a"));
      await takeRestorePoint(sandbox, {});
      played.has(added(".git", { type: 2, changedNs: 1150n }), deleted("a"));
      expect(await keepChanges(sandbox)).toEqual({ snapshot: "tree", workspace: "/repo", count });
      expect((await openSnapshot(played.brigHome, "tree")).points.map(({ kind }) => kind)).toEqual([
        "call",
        "end",
      ]);
    }
  });

  it("are the last state again, if that of an earlier sandbox could not be stored", async () => {
    const { sandbox, tree, brigHome } = await opened();
    for (const records of [[added("a", { size: 3n })], []]) {
      await noteRescue(brigHome, { id: "tree", home: null });
      tree.scans = [{ records }];
      tree.contents.set("/merged/a", "one");
      await keepChanges(sandbox);
      expect(await readRescues(brigHome)).toEqual([]);
    }
  });

  it("may be stored somewhere else", async () => {
    const { sandbox, tree, brigHome } = await opened();
    tree.scans = [{ records: [added("a", { size: 3n })] }];
    tree.contents.set("/merged/a", "one");
    const other = newHome();
    expect(await storeChangesIn(other, sandbox, { maxBytes: 3 })).toBe("tree");
    expect([snapshotsIn(brigHome), snapshotsIn(other)]).toEqual([[], ["tree"]]);
    await expect(storeChangesIn(other, sandbox, { maxBytes: 2 })).rejects.toMatchObject({
      code: "file.too-large",
    });
  });
});

describe("changes that could not be kept", () => {
  const full = new BrigError("the disk is full", {
    code: "snapshot.failed",
    errno: "ENOSPC",
    hint: "make room",
  });

  it("are stored in a temporary directory, which the error names", async () => {
    const { sandbox, tree, brigHome } = await opened();
    tree.scans = [{ records: [deleted("a")] }];
    const error = (await rescueChanges(sandbox, full)) as BrigError;
    const home = /^the disk is full\nthey are in (.*) instead$/.exec(error.message)?.[1] ?? "";
    expect(error).toMatchObject({ code: "snapshot.failed", errno: "ENOSPC", cause: full });
    expect(error.hint).toContain(`BRIG_HOME=${home} brig apply --id tree`);
    expect(await storedAt(home)).toEqual(["deleted a"]);
    expect(await readRescues(brigHome)).toMatchObject([{ id: "tree", home, state: { workspace: "/repo" } }]);
    rmSync(home, { recursive: true });
    expect(await readRescues(brigHome)).toEqual([{ id: "tree", home, state: null }]);
  });

  it("are lost if they cannot be stored there either", async () => {
    const { sandbox, tree, brigHome } = await opened();
    tree.scans = [];
    expect(await rescueChanges(sandbox, full)).toMatchObject({
      message: expect.stringMatching(
        /^the disk is full\nthey could not be stored in .* either, and are lost$/,
      ),
      ...{ code: "snapshot.failed", errno: "ENOSPC", hint: "make room", cause: full },
    });
    expect(await readRescues(brigHome)).toEqual([{ id: "tree", home: null, state: null }]);
  });

  it("for another reason are not stored elsewhere", async () => {
    const other = new BrigError("too large", { code: "file.too-large" });
    const { sandbox, brigHome } = await opened();
    expect(await rescueChanges(sandbox, other)).toBe(other);
    // Earlier states may be there, and are not the last.
    expect(await readRescues(brigHome)).toEqual([{ id: "tree", home: null, state: null }]);
    const plain = new Error("x");
    expect(await rescueChanges(sandbox, plain)).toBe(plain);
  });
});

describe("applies whose process was killed", () => {
  async function killed() {
    const brigHome = newHome();
    await recordOfKilled(brigHome, { workspace: "/repo", stage: ".brig-stage-aa" });
    const { sandbox, tree, warnings } = await opened({ brigHome });
    const events: string[] = [];
    const other = {
      ...sandbox,
      link: { close: ({ code }: BrigError) => void events.push(`closed ${code}`) },
      release: async ({ isEnding }: { isEnding: boolean }) => void events.push(`released ${isEnding}`),
    } as unknown as OpenedSandbox;
    const left = () => readdirSync(join(brigHome, "applies")).length;
    return { brigHome, other, tree, events, warnings, left };
  }

  it("are undone in a sandbox of their workspace, which is not kept", async () => {
    const { brigHome, other, tree, events, left } = await killed();
    const asked: string[] = [];
    const undone = await undoKilledApplies(brigHome, async (workspace) => {
      asked.push(workspace);
      return other;
    });
    expect([undone, asked, left()]).toEqual([["/repo"], ["/repo"], 0]);
    expect(tree.done()).toEqual(["recover /base"]);
    expect(events).toEqual(["closed sandbox.gone", "released false"]);
  });

  it("keep their record if they cannot be undone, or no sandbox opens", async () => {
    const { brigHome, other, tree, events, left } = await killed();
    tree.answer = () => ({ errno: 5 });
    await expect(undoKilledApplies(brigHome, async () => other)).rejects.toMatchObject({ errno: "EIO" });
    expect(events).toEqual(["closed sandbox.gone", "released false"]);
    const failing = undoKilledApplies(brigHome, async () => {
      throw new BrigError("no engine", { code: "engine.unreachable", hint: "" });
    });
    await expect(failing).rejects.toMatchObject({ code: "engine.unreachable" });
    expect(left()).toBe(1);
  });

  it("are forgotten where the workspace is no more", async () => {
    const { brigHome, left } = await killed();
    const undone = await undoKilledApplies(brigHome, async () => {
      throw new BrigError("no such directory", { code: "workspace.invalid" });
    });
    expect([undone, left()]).toEqual([[], 0]);
  });

  it("may be none", async () => {
    const never = async () => {
      throw new Error("nothing is to be opened");
    };
    expect(await undoKilledApplies(newHome(), never)).toEqual([]);
  });
});
