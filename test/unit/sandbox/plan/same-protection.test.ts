import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { planFor } from "./plan-fixture.js";

const id = "6b1d3b6e-0000-4000-8000-000000000000";
let folder: string;
let workspace: string;
let extra: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-same-")));
  [workspace, extra] = [join(folder, "repo"), join(folder, "extra")];
  await mkdir(join(workspace, ".git/hooks"), { recursive: true });
  await mkdir(join(workspace, "deep/sub/.git"), { recursive: true });
  await mkdir(extra);
});
afterEach(async () => await rm(folder, { recursive: true }));

/** The plan of a sandbox, or with `origin`, of its fork. */
async function plan(like?: SandboxPlan): Promise<SandboxPlan> {
  return await planFor(workspace, { overlay: { id, origin: like && { plan: like } }, addDirs: [extra] });
}

const protects = ({ mounts, absentNames, placeholders }: SandboxPlan) => ({
  mounts,
  absent: [...absentNames, ...placeholders].toSorted(),
});

it("a sandbox like another one protects the same, without a search", async () => {
  const first = await plan();
  // Only a search of the workspace would find this repository.
  await mkdir(join(workspace, "later/.git"), { recursive: true });
  const second = await plan(first);
  expect(protects(second)).toEqual(protects(first));
  expect(protects(await plan(second))).toEqual(protects(first));
  expect((await plan()).mounts.map(({ path }) => path)).toContain(join(workspace, "later/.git"));
});

it.for([
  ["replaced", async () => await replace(join(workspace, ".git"))],
  ["replaced deep down", async () => await replace(join(workspace, "deep/sub/.git"))],
  ["removed", async () => await rm(join(workspace, "deep/sub/.git"), { recursive: true })],
  ["created where there was none", async () => await mkdir(join(workspace, ".codex"))],
  ["created in another directory", async () => await mkdir(join(extra, ".git/hooks"), { recursive: true })],
] as const)("where a protected path was %s, there is a search again", async ([, change]) => {
  const first = await plan();
  await change();
  const [second, fresh] = [await plan(first), await plan()];
  expect(protects(second)).toEqual(protects(fresh));
  expect(protects(second)).not.toEqual(protects(first));
});

it("a path that is to be an empty file is one in the other sandbox too, and nothing in a copy", async () => {
  await writeFile(join(workspace, ".git/config"), "[include]\n path = ../more\n");
  await mkdir(join(extra, ".git"));
  await writeFile(join(extra, ".git/config"), "[include]\n path = ../more\n");
  const first = await plan();
  expect(first.emptyFiles).toEqual([join(workspace, "more"), join(extra, "more")]);
  expect(first.placeholders).toContain(join(extra, "more"));
  expect([...first.placeholders, ...first.absentNames]).not.toContain(join(workspace, "more"));
  const second = await plan(first);
  expect(protects(second)).toEqual(protects(first));
  expect(second.emptyFiles).toEqual(first.emptyFiles);
  await writeFile(join(workspace, "more"), "");
  expect((await plan(first)).emptyFiles).toEqual([join(extra, "more")]);
});

it("where a directory itself was replaced, there is a search again", async () => {
  const first = await plan();
  await rename(workspace, `${workspace}-old`);
  await mkdir(join(workspace, "other/.git"), { recursive: true });
  const second = await plan(first);
  expect(second.mounts.map(({ path }) => path)).toContain(join(workspace, "other/.git"));
});

it("a protected path that has become a link is refused, as by any other sandbox", async () => {
  const first = await plan();
  await rename(join(workspace, ".git"), join(folder, "moved"));
  await symlink(join(folder, "moved"), join(workspace, ".git"));
  await expect(plan(first)).rejects.toMatchObject({ code: "policy.not-enforced" });
});

/** Something else with the same name, which does not get the number of the first. */
async function replace(path: string): Promise<void> {
  await rename(path, join(folder, "moved"));
  await mkdir(path);
  await writeFile(join(path, "HEAD"), "");
}
