import { lstatSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { planFor, type Wanted } from "./plan-fixture.js";

const ID = "5f1c0e0a";
const MERGED = `brig-${ID}-merged`;
let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-copies-")));
  repo = join(folder, "repo");
  await mkdir(join(repo, ".git"), { recursive: true });
});
afterEach(async () => await rm(folder, { recursive: true }));

/** Where the files at a path come from. Undefined for what is not mounted. */
function sourceOf({ mounts }: SandboxPlan, path: string) {
  const found = mounts.find((mount) => mount.path === path);
  if (found === undefined) return undefined;
  const { access, source = { kind: "host", path } } = found;
  return `${access} ${source.kind === "volume" ? source.volume : "host"}`;
}

async function copies(wanted: Wanted) {
  const plan = await planFor(repo, wanted);
  const { overlay } = plan;
  return {
    workspace: sourceOf(plan, repo),
    repository: sourceOf(plan, join(repo, ".git")),
    lower: overlay === null ? null : overlay.lower,
    identity: overlay?.identity,
  };
}

const identityOf = (path: string) => {
  const { dev, ino } = lstatSync(path, { bigint: true });
  return { dev: String(dev), ino: String(ino) };
};

describe("what commands see a copy of", () => {
  const overlay = { id: ID };

  it("is nothing without a copy-on-write workspace and a branch", async () => {
    expect(await copies({})).toEqual({
      workspace: "rw host",
      repository: "ro host",
      lower: null,
      identity: undefined,
    });
  });

  it("is the workspace, whose repository stays protected", async () => {
    const found = await copies({ overlay });
    expect(found).toMatchObject({ workspace: `rw ${MERGED}`, lower: repo, identity: identityOf(repo) });
    expect(found.repository).toMatch(/^ro /);
  });

  it("is the repository alone, where commands may commit and the rest is the host's", async () => {
    const git = join(repo, ".git");
    expect(await copies({ overlay, branch: { hasOwnTree: true } })).toEqual({
      workspace: "rw host",
      repository: `rw ${MERGED}`,
      lower: git,
      identity: identityOf(git),
    });
  });

  it("is both in one, where commands may commit in a workspace that is copy-on-write", async () => {
    const found = await copies({ overlay, branch: { hasOwnTree: false } });
    expect(found).toMatchObject({ workspace: `rw ${MERGED}`, lower: repo, identity: identityOf(repo) });
    expect(found.repository).toBeUndefined();
  });

  it("is not the repository where commands may write nothing", async () => {
    const mode = "read-only";
    expect(await copies({ mode, overlay, branch: { hasOwnTree: true } })).toMatchObject({
      workspace: "ro host",
      lower: null,
    });
    expect(await copies({ mode, overlay, branch: { hasOwnTree: false } })).toMatchObject({
      workspace: `ro ${MERGED}`,
      lower: repo,
    });
  });

  it("is nothing without a workspace", async () => {
    for (const branch of [undefined, { hasOwnTree: true }, { hasOwnTree: false }])
      expect(await planFor(null, { overlay, branch })).toMatchObject({ overlay: null, mounts: [] });
  });
});

describe("a workspace whose path an overlay cannot have", () => {
  it.each([",", ":", "\\"])(
    "with %j is refused where it is to be copy-on-write, and only there",
    async (sign) => {
      const path = join(folder, `a${sign}b`);
      await mkdir(path);
      await expect(planFor(path, { overlay: { id: ID } })).rejects.toMatchObject({
        code: "workspace.invalid",
      });
      expect((await planFor(path)).workspace).toBe(path);
    },
  );
});
