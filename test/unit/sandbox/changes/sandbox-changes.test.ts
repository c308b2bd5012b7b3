import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  applyForkTo,
  applyKept,
  applySandbox,
  diffOfFork,
  diffSandbox,
  forkSandbox,
  keepChanges,
  openFromSnapshot,
  snapshotSandbox,
  storeChangesIn,
} from "../../../../src/sandbox/changes/sandbox-changes.js";
import type { Opened } from "../../../../src/sandbox/changes/take-snapshot.js";
import { SecretMask } from "../../../../src/sandbox/egress/secrets/secret-mask.js";
import type { OpenedSandbox } from "../../../../src/sandbox/open-sandbox.js";
import {
  pointsOf,
  restorePointOf,
  takeRestorePoint,
  undoCall,
} from "../../../../src/sandbox/points/sandbox-points.js";
import { added } from "../overlay/played-tree.js";
import { playedPoints, storedAt } from "../points/played-points.js";
import { newHome } from "./apply/apply-of.js";
import { opened } from "./opened.js";

const snapshotsIn = (home: string) =>
  existsSync(join(home, "snapshots")) ? readdirSync(join(home, "snapshots")) : [];
const file = (changedNs: bigint) => ({ size: 3n, changedNs, ino: 5n });

describe("a sandbox without a copy-on-write workspace", () => {
  it.each<[string, (sandbox: Opened) => Promise<unknown>]>([
    ["diff", (sandbox) => diffSandbox(sandbox, {})],
    ["apply", (sandbox) => applySandbox(sandbox, {})],
    ["apply", (sandbox) => applyKept(sandbox, "x", {})],
    ["snapshot", (sandbox) => snapshotSandbox(sandbox, {})],
    ["close", (sandbox) => keepChanges(sandbox)],
    ["close", (sandbox) => storeChangesIn("/proc/nowhere", sandbox, { maxBytes: 1 })],
    ["fork", (sandbox) => forkSandbox(sandbox as unknown as OpenedSandbox, {})],
    ["changesSinceFork", (sandbox) => diffOfFork(sandbox, {})],
    ["applyTo", (sandbox) => applyForkTo(sandbox, sandbox, {})],
    ["restorePoint", (sandbox) => takeRestorePoint(sandbox, {})],
    ["restore", (sandbox) => restorePointOf(sandbox, 1, {})],
    ["undo", (sandbox) => undoCall(sandbox, {})],
  ])("has no %s", async (method, call) => {
    const { sandbox } = await opened({ tree: null });
    await expect(call(sandbox)).rejects.toMatchObject({
      code: "workspace.invalid",
      message: `sandbox.${method} works with a copy-on-write workspace only`,
      hint: expect.stringContaining("--workspace overlay"),
    });
  });
});

describe("a sandbox that is no fork", () => {
  it.each<[string, (sandbox: Opened) => Promise<unknown>]>([
    ["changesSinceFork", (sandbox) => diffOfFork(sandbox, {})],
    ["applyTo", (sandbox) => applyForkTo(sandbox, sandbox, {})],
  ])("has no %s", async (method, call) => {
    const { sandbox } = await opened();
    await expect(call(sandbox)).rejects.toMatchObject({
      code: "workspace.invalid",
      message: `sandbox.${method} is for a fork, and this sandbox is none`,
      hint: expect.stringContaining("fork"),
    });
  });

  it("cannot be forked once its tree is closed", async () => {
    const { sandbox } = await opened();
    const closed = { code: "sandbox.gone", reason: "closed", message: "the sandbox was closed" };
    for (const overlay of [undefined, { isOpen: false }]) {
      Object.assign(sandbox.settings, { overlay });
      await expect(forkSandbox(sandbox as unknown as OpenedSandbox, {})).rejects.toMatchObject(closed);
    }
  });
});

describe("the diff of a sandbox", () => {
  const records = [added(".git/x"), added("a")];

  it("leaves out the repository where its commits arrive as a branch", async () => {
    const plain = await opened();
    plain.tree.scans = [{ records }];
    expect((await diffSandbox(plain.sandbox, { patches: false })).count).toBe(2);
    const branch = await opened({ hasBranch: true });
    branch.tree.scans = [{ records }];
    expect((await diffSandbox(branch.sandbox, { patches: false })).changes.map(({ path }) => path)).toEqual([
      "a",
    ]);
  });

  it("hides the secrets of the sandbox", async () => {
    const { sandbox, tree } = await opened({ mask: new SecretMask([{ value: "supersecretvalue" }]) });
    tree.scans = [{ records: [added("a")] }];
    tree.contents.set("/merged/a", "supersecretvalue\n");
    const [change] = (await diffSandbox(sandbox, {})).changes;
    expect(change?.patch).not.toContain("supersecret");
  });
});

describe("the apply of a sandbox", () => {
  it("writes neither what its own policy protects nor what an ordinary one does", async () => {
    const { sandbox, tree } = await opened({ protectedNames: [".mine"] });
    tree.scans = [{ records: [added(".codex/x"), added(".mine"), added("a")] }];
    expect(await applySandbox(sandbox, { dryRun: true })).toMatchObject({
      applied: ["a"],
      skipped: [
        { path: ".codex/x", reason: ".codex is a protected name" },
        { path: ".mine", reason: ".mine is a protected name" },
      ],
    });
  });

  it("leaves out the repository where its commits arrive as a branch", async () => {
    const { sandbox, tree } = await opened({ hasBranch: true });
    tree.scans = [{ records: [added(".git/x"), added("a")] }];
    expect(await applySandbox(sandbox, { dryRun: true })).toMatchObject({ applied: ["a"], skipped: [] });
  });

  async function withPoints() {
    const played = await playedPoints();
    const { sandbox, warnings } = await opened({ tree: played.tree, brigHome: played.brigHome });
    played.tree.contents.set("/merged/a", "one");
    played.has(added("a", file(900n)));
    const points = pointsOf(sandbox, "apply");
    return { ...played, sandbox, warnings, points };
  }

  it("takes no restore points where there are none", async () => {
    const { sandbox, points, brigHome } = await withPoints();
    expect((await applySandbox(sandbox, {})).applied).toEqual(["a"]);
    expect(points.taken).toEqual([]);
    expect(snapshotsIn(brigHome)).toEqual([]);
  });

  it("takes one of what was changed before, and one of the apply", async () => {
    const { sandbox, tree, points, has } = await withPoints();
    await takeRestorePoint(sandbox, {});
    const usual = tree.answer;
    has(added("a", file(900n)), added("d", { type: 2, changedNs: 1150n }));
    expect((await applySandbox(sandbox, { dryRun: true })).applied).toEqual(["a", "d"]);
    expect(points.taken).toHaveLength(1);
    tree.answer = (request) => {
      if (request.operation === "commit") has();
      return usual(request);
    };
    await applySandbox(sandbox, {});
    expect(points.taken.map(({ kind }) => kind)).toEqual(["call", "call", "applied"]);
    expect(points.state.size).toBe(0);
  });

  it("only warns if the point of the apply cannot be taken", async () => {
    const { sandbox, tree, warnings } = await withPoints();
    await takeRestorePoint(sandbox, {});
    const usual = tree.answer;
    let isCommitted = false;
    tree.answer = (request) => {
      if (request.operation === "commit") isCommitted = true;
      // The scan of the apply itself comes first.
      const isOfPoint =
        isCommitted && request.operation === "changes" && tree.done().at(-2) !== "commit /base";
      return isOfPoint ? { errno: 5 } : usual(request);
    };
    expect((await applySandbox(sandbox, {})).applied).toEqual(["a"]);
    expect(warnings).toMatchObject([{ errno: "EIO" }]);
  });

  it("of a kept state notes there what was applied, and only warns if that fails", async () => {
    const brigHome = newHome();
    const session = await opened({ brigHome });
    const records = [added("d", { type: 2 }), added("e", { type: 2 })];
    session.tree.scans = [{ records }];
    expect(await keepChanges(session.sandbox)).toEqual({ snapshot: "tree", workspace: "/repo", count: 2 });
    const later = await opened({ brigHome });
    later.tree.scans = [{ records }];
    expect((await applyKept(later.sandbox, "tree", { paths: ["d"] })).applied).toEqual(["d"]);
    expect(await storedAt(brigHome)).toEqual(["added e"]);
    expect((await applyKept(later.sandbox, "unknown", { paths: ["e"] })).applied).toEqual(["e"]);
    expect(later.warnings).toMatchObject([{ code: "snapshot.unknown" }]);
  });
});

describe("the snapshot of a sandbox", () => {
  it("is stored until it is removed", async () => {
    const { sandbox, tree, brigHome } = await opened();
    tree.scans = [{ records: [added("a", { size: 1n })] }];
    tree.contents.set("/merged/a", "x");
    const named = await snapshotSandbox(sandbox, { id: "mine" });
    expect(named).toMatchObject({ id: "mine", workspace: "/repo", createdAt: expect.any(Date) });
    expect(await storedAt(brigHome, undefined, "mine")).toEqual(["added a=x"]);
    const other = await snapshotSandbox(sandbox, {});
    expect(other.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(snapshotsIn(brigHome)).toHaveLength(2);
    await named.remove();
    expect(snapshotsIn(brigHome)).toEqual([other.id]);
    await expect(snapshotSandbox(sandbox, { maxBytes: 0 })).rejects.toMatchObject({ code: "file.too-large" });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(snapshotSandbox(sandbox, { signal })).rejects.toThrow("stop");
  });
});

it("a sandbox of a snapshot is not opened without the snapshot", async () => {
  const settings = async () => {
    throw new Error("nothing is to be opened");
  };
  const opening = openFromSnapshot(settings, { id: "none", brigHome: newHome(), start: {} as never });
  await expect(opening).rejects.toMatchObject({ code: "snapshot.unknown" });
});
