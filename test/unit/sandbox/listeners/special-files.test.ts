import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SpecialFiles } from "../../../../src/sandbox/listeners/cover-listeners.js";
import { listenOnHost, makeFifo } from "../../../support/host-listeners.js";

let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-special-")));
});
afterEach(async () => await rm(folder, { recursive: true }));

const relative = (found: { path: string; kind: string }[]) =>
  found.map(({ path, kind }) => `${kind} ${path.slice(folder.length + 1)}`).toSorted();

describe("the sockets and FIFOs of a tree", () => {
  it("are found in every directory, those of git and of packages too", async () => {
    for (const directory of ["a/b", ".git", "node_modules/x"])
      await mkdir(join(folder, directory), { recursive: true });
    await writeFile(join(folder, "a/file"), "");
    await listenOnHost({ directory: folder, address: ".git/daemon.ipc" });
    makeFifo(join(folder, "node_modules/x/fifo"));
    makeFifo(join(folder, "a/b/fifo"));
    const files = new SpecialFiles([folder]);
    expect(relative(await files.search())).toEqual([
      "fifo a/b/fifo",
      "fifo node_modules/x/fifo",
      "socket .git/daemon.ipc",
    ]);
  });

  it("are found again where they are by then", async () => {
    await mkdir(join(folder, "a"));
    makeFifo(join(folder, "a/old"));
    makeFifo(join(folder, "gone"));
    const files = new SpecialFiles([folder]);
    await files.search();
    await rename(join(folder, "a"), join(folder, "moved"));
    await rm(join(folder, "gone"));
    await mkdir(join(folder, "new/deep"), { recursive: true });
    makeFifo(join(folder, "new/deep/late"));
    expect(relative(await files.search())).toEqual(["fifo moved/old", "fifo new/deep/late"]);
    expect(files.canSearchAgain).toBe(true);
  });

  it("are not looked for behind links", async () => {
    await mkdir(join(folder, "tree"));
    await mkdir(join(folder, "other"));
    makeFifo(join(folder, "other/fifo"));
    await symlink(join(folder, "other"), join(folder, "tree/link"));
    await symlink(join(folder, "other/fifo"), join(folder, "tree/fifo"));
    expect(await new SpecialFiles([join(folder, "tree")]).search()).toEqual([]);
  });

  it("are none in a file, and in a tree that is gone", async () => {
    await writeFile(join(folder, "file"), "");
    expect(await new SpecialFiles([join(folder, "file"), join(folder, "none")]).search()).toEqual([]);
  });
});
