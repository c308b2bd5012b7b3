import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applierPlan, keeperPlan, type OverlaidPlan } from "../../../../src/sandbox/overlay/overlay-tree.js";
import { planFor } from "../plan/plan-fixture.js";

const overlay = { id: "7a0c1d7e-0000-4000-8000-000000000000" };
const merged = { kind: "volume", volume: `brig-${overlay.id}-merged` };
let repo: string;
let plan: OverlaidPlan;

beforeAll(async () => {
  repo = join(await realpath(await mkdtemp(join(tmpdir(), "brig-plans-"))), "repo");
  await mkdir(join(repo, "sub"), { recursive: true });
  await writeFile(join(repo, "file"), "");
  plan = (await planFor(repo, { overlay, network: "full" as never })) as OverlaidPlan;
});
afterAll(async () => await rm(join(repo, ".."), { recursive: true }));

const labels = { "brig.tree": "x" };

describe("the plan of a tree's container", () => {
  it("keeps the image and the limits, and nothing of the agent's", () => {
    const applier = applierPlan(plan, { protectedMounts: [], labels, user: { uid: 5, gid: 6 } });
    for (const one of [keeperPlan(plan, { isFirst: true, labels }), applier]) {
      expect(one).toMatchObject({
        ...{ sessionId: overlay.id, workspace: null, workingDirectory: "/", volumes: [], parents: [] },
        ...{ placeholders: [], absentNames: [], network: "none", egress: null, noNewPrivileges: true },
        ...{ leaseSeconds: 60, imageEnvironment: {}, callerEnvironment: {}, labels, seccomp: "full-access" },
      });
      expect([one.image, one.limits]).toEqual([plan.image, plan.limits]);
    }
    expect(applier).toMatchObject({ overlay: null, runnerArguments: [] });
  });

  it("has a lease also where the session's own sandbox has none", () => {
    expect(keeperPlan({ ...plan, leaseSeconds: 0 }, { isFirst: true, labels }).leaseSeconds).toBe(60);
    expect(keeperPlan({ ...plan, leaseSeconds: 7 }, { isFirst: true, labels }).leaseSeconds).toBe(7);
  });
});

describe("the keeper of a tree", () => {
  it("is root with the capabilities for it, and may write to the tree only", () => {
    const keeper = keeperPlan(plan, { isFirst: true, labels });
    expect(keeper).toMatchObject({
      ...{
        user: { uid: 0, gid: 0 },
        capabilities: "tree",
        runnerArguments: ["--copy-rights", "/base:/merged"],
      },
      policyName: `of the keeper of ${JSON.stringify(repo)}`,
    });
    expect(keeper.mounts).toEqual([
      {
        kind: "protected",
        path: "/base",
        access: "ro",
        identity: plan.overlay.identity,
        source: { kind: "host", path: repo },
      },
      { kind: "writable-root", path: "/merged", access: "rw", identity: null, source: merged },
      {
        ...{ kind: "protected", path: "/upper", access: "ro", identity: null },
        source: { kind: "volume", volume: `brig-${overlay.id}-upper` },
      },
    ]);
    expect(keeper.overlay?.path).toBe("/merged");
    expect(keeper.overlay?.witnesses.map(({ path }) => path).toSorted()).toEqual([
      "/merged/file",
      "/merged/sub",
    ]);
    expect(keeper.overlay?.witnesses.map(({ ino }) => ino).toSorted()).toEqual(
      plan.overlay.witnesses.map(({ ino }) => ino).toSorted(),
    );
  });

  it("that takes the place of another one sets no rights, and looks for no witnesses", () => {
    const keeper = keeperPlan(plan, { isFirst: false, labels });
    expect([keeper.runnerArguments, keeper.overlay?.witnesses]).toEqual([[], []]);
  });

  it("of a fork can read the tree that was forked", () => {
    expect(keeperPlan(plan, { isFirst: true, labels, from: "other" }).mounts.at(-1)).toEqual({
      ...{ kind: "protected", path: "/from", access: "ro", identity: null },
      source: { kind: "volume", volume: "brig-other-merged" },
    });
  });
});

describe("an applier", () => {
  it("may write to the workspace as a user, but not to what is protected in it", () => {
    const identity = { dev: "1", ino: "2" };
    const mount = (path: string) => ({ kind: "protected", path, access: "ro", identity }) as const;
    const protectedMounts = [
      mount(join(repo, "sub/.git")),
      mount("/elsewhere"),
      mount(repo),
      mount(`${repo}x`),
    ];
    const applier = applierPlan(plan, { protectedMounts, labels, user: { uid: 5, gid: 6 } });
    expect(applier).toMatchObject({ user: { uid: 5, gid: 6 }, capabilities: "none" });
    expect(applier.policyName).toBe(`of the writer to ${JSON.stringify(repo)}`);
    expect(applier.mounts).toEqual([
      {
        kind: "writable-root",
        path: "/base",
        access: "rw",
        identity: plan.overlay.identity,
        source: { kind: "host", path: repo },
      },
      {
        ...{ kind: "protected", path: "/base/sub/.git", access: "ro", identity },
        source: { kind: "host", path: join(repo, "sub/.git") },
      },
    ]);
  });
});
