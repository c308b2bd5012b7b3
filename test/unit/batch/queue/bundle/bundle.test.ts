import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { type Header, pack as packHostile } from "tar-stream";
import { describe, expect, it } from "vitest";
import { folderEntries, pack, treeEntries, unpack } from "../../../../../src/batch/queue/bundle.js";
import { listTaskFiles } from "../../../../../src/batch/tasks/files.js";
import { TaskNotes } from "../../../../../src/batch/tasks/notes.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

const limits = { allowsLinks: false, maxBytes: 1_000_000 };

async function emptyFolder(): Promise<string> {
  const folder = join(await temporaryFolder(), "into");
  await mkdir(folder);
  return folder;
}

/** An archive with these entries, whatever they are. */
async function hostileArchive(entries: (Partial<Header> & { name: string })[]): Promise<string> {
  const tar = packHostile();
  for (const entry of entries)
    if (entry.type === undefined) tar.entry(entry, "x");
    else tar.entry(entry);
  tar.finalize();
  const file = join(await temporaryFolder(), "archive.tar.gz");
  await writeFile(file, await buffer(tar.pipe(createGzip())));
  return file;
}

describe("an archive", () => {
  it("of a task has its files, programs, links and empty directories", async () => {
    const root = await temporaryFolder();
    await mkdir(join(root, "empty"));
    await writeFile(join(root, "name with\ttab — ü"), "text");
    await writeFile(join(root, "program"), "#!/bin/sh\n", { mode: 0o755 });
    await symlink("program", join(root, "link"));
    const tree = await listTaskFiles(root, { notes: new TaskNotes(root) });
    const trees = () => [{ root, at: "task", entries: tree.entries() }];
    const archive = join(await temporaryFolder(), "a.tar.gz");
    const packed = await pack(treeEntries(trees()), archive);
    const again = await pack(treeEntries(trees()), `${archive}.again`);
    expect(again.sha256).toBe(packed.sha256);
    const into = await emptyFolder();
    await unpack(archive, { ...limits, into, allowsLinks: true });
    // The listing of tasks leaves out names with control characters.
    expect((await readdir(join(into, "task"))).toSorted()).toEqual(["empty", "link", "program"]);
    expect(await readlink(join(into, "task/link"))).toBe("program");
    expect((await lstat(join(into, "task/program"))).mode & 0o777).toBe(0o755);
  });

  it("of an attempt has its files, and no links", async () => {
    const root = await temporaryFolder();
    await mkdir(join(root, "artifacts"));
    await writeFile(join(root, "artifacts/a"), "text");
    await writeFile(join(root, "result.json"), "{}");
    await symlink("/etc/passwd", join(root, "artifacts/link"));
    const archive = join(await temporaryFolder(), "a.tar.gz");
    await pack(folderEntries(root), archive);
    const into = await emptyFolder();
    const kept = await unpack(archive, { ...limits, into, keeps: ["result.json"] });
    expect(kept.get("result.json")?.toString()).toBe("{}");
    expect(await readdir(into, { recursive: true })).toEqual(["artifacts", "artifacts/a"]);
    expect(await readFile(join(into, "artifacts/a"), "utf8")).toBe("text");
  });

  it.each([
    ["a path that leads out", [{ name: "../out" }]],
    ["an absolute path", [{ name: "/out" }]],
    ["a path through ..", [{ name: "a/../../out" }]],
    ["a link", [{ name: "link", type: "symlink", linkname: "/etc" }]],
    ["a hard link", [{ name: "link", type: "link", linkname: "/etc/passwd" }]],
    ["a device", [{ name: "device", type: "character-device" }]],
    ["the same file twice", [{ name: "a" }, { name: "a" }]],
  ] as [string, (Partial<Header> & { name: string })[]][])("with %s is refused", async (_, entries) => {
    const into = await emptyFolder();
    const archive = await hostileArchive(entries);
    await expect(unpack(archive, { ...limits, into })).rejects.toMatchObject({ code: "store.failed" });
    expect(await readdir(join(into, ".."))).toEqual(["into"]);
  });

  it("writes nothing through a link that it has", async () => {
    const outside = await temporaryFolder();
    const into = await emptyFolder();
    const archive = await hostileArchive([
      { name: "link", type: "symlink", linkname: outside },
      { name: "link/file" },
    ]);
    await expect(unpack(archive, { ...limits, into, allowsLinks: true })).rejects.toMatchObject({
      code: "store.failed",
    });
    expect(await readdir(outside)).toEqual([]);
  });

  it("that is larger than allowed, or no archive, is refused", async () => {
    const root = await temporaryFolder();
    await writeFile(join(root, "large"), Buffer.alloc(2_000_000));
    const archive = join(await temporaryFolder(), "a.tar.gz");
    await pack(folderEntries(root), archive);
    await expect(unpack(archive, { ...limits, into: await emptyFolder() })).rejects.toMatchObject({
      code: "store.failed",
    });
    await writeFile(`${archive}.torn`, (await readFile(archive)).subarray(0, 500));
    await expect(
      unpack(`${archive}.torn`, { ...limits, maxBytes: 1e9, into: await emptyFolder() }),
    ).rejects.toMatchObject({ code: "store.failed" });
  });
});
