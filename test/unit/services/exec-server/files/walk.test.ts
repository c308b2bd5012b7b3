import { lstat, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import type { FileType } from "../../../../../src/sandbox/portable-sandbox.js";
import type { DirectoryEntry, FileStat } from "../../../../../src/sandbox/sandbox-types.js";
import {
  type WalkOptions,
  type WalkResult,
  walkTree,
} from "../../../../../src/services/exec-server/files/walk.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

const everything: WalkOptions = {
  maxDepth: 64,
  maxDirectories: 10_000,
  maxEntries: 50_000,
  followDirectorySymlinks: false,
  pruneHiddenDirectories: false,
};

/** This machine's files, in place of a sandbox's. */
const files = {
  async list(
    path: string | Uint8Array,
    { onEntries }: { onEntries?: ((entries: DirectoryEntry[]) => void) | undefined } = {},
  ) {
    const found = await readdir(String(path), { withFileTypes: true, encoding: "utf8" }).catch(asFileError);
    const entries = found.map((one) => ({
      name: one.name,
      nameBytes: Buffer.from(one.name),
      type: kind(one),
    }));
    onEntries?.(entries);
    return onEntries ? [] : entries;
  },
  async stat(path: string, { followSymlinks = true }: { followSymlinks?: boolean } = {}): Promise<FileStat> {
    const found = await (followSymlinks ? stat : lstat)(path, { bigint: true }).catch(asFileError);
    const { dev, ino } = found;
    return {
      type: kind(found),
      dev,
      ino,
      sizeBytes: 0,
      mode: 0,
      modifiedMs: 0,
      uid: 0,
      gid: 0,
      linkTarget: null,
    };
  },
  isHidden: async (path: string) => path.endsWith("/placeholder"),
};

interface Kind {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

function kind(one: Kind): FileType {
  if (one.isSymbolicLink()) return "symlink";
  return one.isDirectory() ? "directory" : one.isFile() ? "file" : "unknown";
}

function asFileError(error: { code: string; message: string }): never {
  throw new BrigError(error.message, { code: "file.failed", errno: error.code });
}

async function walk(root: string, options: Partial<WalkOptions> = {}, signal = new AbortController().signal) {
  return shown(root, await walkTree(files, root, { ...everything, ...options, signal }));
}

/** The paths below the root, each directory with a slash. */
function shown(root: string, { entries, errors, truncated }: WalkResult) {
  const below = (path: string) => path.replace(`file://${root}/`, "");
  return {
    paths: entries.map(({ path, kind }) => below(path) + (kind === "directory" ? "/" : "")),
    errors: errors.map(({ path, message }) => `${below(path)}: ${message}`),
    truncated,
  };
}

async function tree(root: string): Promise<void> {
  await mkdir(join(root, "b", "c", "d"), { recursive: true });
  await mkdir(join(root, ".hidden", "x"), { recursive: true });
  await mkdir(join(root, "placeholder"));
  for (const name of ["f", "Z", "b/ü %", ".dot"]) await writeFile(join(root, name), "");
  const links = { "to-b": "b", "to-f": "f", nowhere: "none", circle: "circle", "b/up": ".." };
  for (const [name, target] of Object.entries(links)) await symlink(target, join(root, name));
}

describe("a walk", () => {
  it("shows files and directories level by level, and leaves links and placeholders out", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    expect(await walk(root.path)).toEqual({
      paths: [".dot", ".hidden/", "Z", "b/", "f", ".hidden/x/", "b/c/", "b/%C3%BC%20%25", "b/c/d/"],
      errors: [],
      truncated: false,
    });
  });

  it("follows links to directories on request, and never a second time into the same one", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    const { paths, truncated } = await walk(root.path, { followDirectorySymlinks: true });
    expect(paths).toContain("to-b/");
    expect(paths).toContain("b/up/");
    expect(paths.filter((path) => /^(to-b|b\/up)\/./.test(path))).toEqual([]);
    expect(truncated).toBe(false);
  });

  it("shows hidden directories and not what is in them, on request", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    const { paths } = await walk(root.path, { pruneHiddenDirectories: true });
    expect(paths).toContain(".hidden/");
    expect(paths).not.toContain(".hidden/x/");
  });

  it.each<[Partial<WalkOptions>, string[], boolean]>([
    [{ maxDepth: 0 }, [".dot", ".hidden/", "Z", "b/", "f"], false],
    [{ maxDepth: 1 }, [".dot", ".hidden/", "Z", "b/", "f", ".hidden/x/", "b/c/", "b/%C3%BC%20%25"], false],
    [{ maxDirectories: 2 }, [".dot", ".hidden/", "Z", "b/", "f", ".hidden/x/"], true],
    [{ maxEntries: 2 }, [".dot", ".hidden/"], true],
  ])("keeps to %o", async (options, paths, truncated) => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    expect(await walk(root.path, options)).toEqual({ paths, errors: [], truncated });
  });

  it("of a file or a link that it does not follow is empty; of nothing it fails", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    for (const name of ["f", "to-b"]) expect((await walk(join(root.path, name))).paths).toEqual([]);
    for (const name of ["none", "circle"]) await expect(walk(join(root.path, name))).rejects.toThrow();
  });

  it("says which directory cannot be listed, and goes on", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    const list: typeof files.list = async (path, options) =>
      String(path).endsWith("/b")
        ? asFileError({ code: "EACCES", message: "no" })
        : await files.list(path, options);
    const signal = new AbortController().signal;
    const result = await walkTree({ ...files, list }, root.path, { ...everything, signal });
    expect(shown(root.path, result)).toEqual({
      paths: [".dot", ".hidden/", "Z", "b/", "f", ".hidden/x/"],
      errors: ["b: Permission denied (os error 13)"],
      truncated: false,
    });
  });

  it("is cut short where the answer would be too long", async () => {
    const name = "x".repeat(2000);
    const entries = Array.from({ length: 20_000 }, (_, at) => {
      const nameBytes = Buffer.from(`${name}${at}`);
      return { name: nameBytes.toString(), nameBytes, type: "file" as const };
    });
    const list: typeof files.list = async (_, { onEntries } = {}) => {
      onEntries?.(entries);
      return [];
    };
    const signal = new AbortController().signal;
    const result = await walkTree({ ...files, list }, "/tmp", { ...everything, maxEntries: 1e6, signal });
    expect(result.truncated).toBe(true);
    expect(JSON.stringify(result).length).toBeLessThan(24 * 1024 * 1024);
  });

  it("ends with what it has found when it is aborted, also where the sandbox answers nothing more", async () => {
    await using root = await temporaryDirectory();
    await tree(root.path);
    const stopped = new AbortController();
    const list: typeof files.list = async (path, options) => {
      if (path === root.path) return await files.list(path, options);
      stopped.abort();
      return await new Promise<never>(() => undefined);
    };
    const result = await walkTree({ ...files, list }, root.path, { ...everything, signal: stopped.signal });
    expect(shown(root.path, result)).toEqual({
      paths: [".dot", ".hidden/", "Z", "b/", "f"],
      errors: [],
      truncated: true,
    });
  });
});
