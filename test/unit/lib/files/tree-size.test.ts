import { execFileSync } from "node:child_process";
import { link, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { treeSize } from "../../../../src/lib/files/tree-size.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const unlimited = { maxBytes: Number.POSITIVE_INFINITY, maxEntries: 1_000_000 };

it("measures what a tree takes on the disk, without what links lead to, and opens no FIFO", async () => {
  await using directory = await temporaryDirectory();
  const top = join(directory.path, "home");
  await mkdir(join(top, "a", "b"), { recursive: true });
  await writeFile(join(directory.path, "outside"), Buffer.alloc(4_000_000, 1));
  await writeFile(join(top, "a", "b", "file"), Buffer.alloc(1_000_000, 1));
  await symlink(join(directory.path, "outside"), join(top, "link"));
  await symlink("/", join(top, "root"));
  await symlink(".", join(top, "a", "loop"));
  execFileSync("mkfifo", [join(top, "fifo")]);
  // A hole takes nothing.
  await writeFile(join(top, "hole"), "");
  await truncate(join(top, "hole"), 1e12);
  const size = await treeSize(top, unlimited);
  expect(size).toMatchObject({ entries: 8, isPartial: false });
  expect(size.bytes).toBeGreaterThanOrEqual(1_000_000);
  expect(size.bytes).toBeLessThan(2_000_000);
});

it("a file counts once, however many names it has", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(join(directory.path, "file"), Buffer.alloc(1_000_000, 1));
  for (let count = 0; count < 5; count++)
    await link(join(directory.path, "file"), join(directory.path, `name-${count}`));
  expect((await treeSize(directory.path, unlimited)).bytes).toBeLessThan(1_200_000);
});

it("stops at its limits, and says so where it could not look", async () => {
  await using directory = await temporaryDirectory();
  for (let count = 0; count < 20; count++) await writeFile(join(directory.path, String(count)), "text");
  expect(await treeSize(directory.path, { ...unlimited, maxEntries: 10 })).toMatchObject({
    ...{ entries: 10, isPartial: true },
  });
  const few = await treeSize(directory.path, { ...unlimited, maxBytes: 0 });
  expect(few.isPartial).toBe(true);
  expect(few.entries).toBeLessThan(20);
  expect(await treeSize(join(directory.path, "missing"), unlimited)).toEqual({
    bytes: 0,
    entries: 0,
    isPartial: true,
  });
  const aborted = AbortSignal.abort(new Error("ctrl-C"));
  await expect(treeSize(directory.path, { ...unlimited, signal: aborted })).rejects.toThrow("ctrl-C");
});
