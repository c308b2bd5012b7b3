import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { EmptyDirectory } from "../../../../../src/services/serve/workspaces/empty-directory.js";

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "brig-empty-"));
});
afterEach(async () => await rm(parent, { recursive: true }));

it("any user can write to a workspace that has its mode", async () => {
  const { path } = await EmptyDirectory.make(parent);
  expect((await stat(path)).mode & 0o777).toBe(0o777);
});

it("it is there until the last one lets go of it", async () => {
  const directory = await EmptyDirectory.make(parent);
  const [sandbox, fork] = [directory.hold(), directory.hold()];
  await sandbox[Symbol.asyncDispose]();
  await sandbox[Symbol.asyncDispose]();
  expect(await readdir(parent)).toHaveLength(1);
  await fork[Symbol.asyncDispose]();
  expect(await readdir(parent)).toEqual([]);
});
