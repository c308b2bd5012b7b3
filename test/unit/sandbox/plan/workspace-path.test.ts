import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { requireWorkspacePath } from "../../../../src/sandbox/plan/workspace.js";
import { planFor } from "./plan-fixture.js";

let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-path-")));
});
afterEach(async () => await rm(folder, { recursive: true }));

it("commands see the workspace at another path than the host's, and nothing of the host at that path", async () => {
  // The host's own configuration is at the path at which the workspace is inside.
  const host = { homeDirectory: "/home/alice", configDirectories: ["/home/alice/.brig"] };
  const plan = await planFor(folder, { overlay: { id: "tree" }, workspacePath: "/home/alice", host });
  expect(plan).toMatchObject({
    ...{ workspace: "/home/alice", workingDirectory: "/home/alice" },
    overlay: { path: "/home/alice", lower: folder },
    ...{ absentNames: [], placeholders: [], emptyFiles: [] },
  });
  expect(plan.mounts).toEqual([
    {
      ...{ kind: "workspace", path: "/home/alice", access: "rw", identity: null },
      source: { kind: "volume", volume: "brig-tree-merged" },
    },
  ]);
});

it("a directory in memory at the path of the workspace does not hide it", async () => {
  const plan = await planFor(folder, { overlay: { id: "tree" }, workspacePath: "/tmp" });
  expect(plan.tmpfs.map(({ path }) => path)).not.toContain("/tmp");
});

it("a read-only mode has a read-only workspace", async () => {
  const wanted = { mode: "read-only", overlay: { id: "tree" }, workspacePath: "/work" };
  expect((await planFor(folder, wanted)).mounts).toMatchObject([{ path: "/work", access: "ro" }]);
});

it("only a copy-on-write workspace can be elsewhere", async () => {
  await expect(planFor(folder, { workspacePath: "/work" })).rejects.toThrow(TypeError);
});

it("it can hide neither the system of the image nor what brig mounts", () => {
  const refused = ["/", "/usr", "/usr/bin", "/etc/ssl", "/proc", "/.brig", "/.brig/x", "/dev/shm", "/var"];
  for (const path of [...refused, "work", "/a/../etc", "/a//b", "/a/", "/a\nb", "/a\0b"])
    expect(() => requireWorkspacePath(path), path).toThrow(
      expect.objectContaining({ code: "usage.invalid" }),
    );
  for (const path of ["/workspace", "/home/user", "/root", "/tmp/x", "/usr/src/app", "/opt", "/srv/a"])
    expect(() => requireWorkspacePath(path), path).not.toThrow();
});
