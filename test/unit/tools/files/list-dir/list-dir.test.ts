import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { BrigError, type ErrorCode } from "../../../../../src/errors.js";
import { createToolRegistry } from "../../../../../src/tools/registry.js";
import type { ToolFiles } from "../../../../../src/tools/tool-sandbox.js";
import { runs } from "../../../../support/fuzz.js";
import { hostFiles } from "../../../../support/host-files.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";

const root = mkdtempSync(join(tmpdir(), "brig-list-dir-"));
const tools = createToolRegistry(new MemorySandbox(), { cwd: root });

beforeEach(() => {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root);
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

/** Paths ending in / are directories. */
function grow(...paths: string[]): void {
  for (const path of paths) {
    const full = join(root, path);
    mkdirSync(path.endsWith("/") ? full : join(full, ".."), { recursive: true });
    if (!path.endsWith("/")) writeFileSync(full, "");
  }
}

async function list(args: object = {}): Promise<string[]> {
  const { content } = await tools.get("list_dir").execute({ dir_path: root, ...args });
  return content.split("\n");
}

async function entries(args: object = {}): Promise<string[]> {
  const [header, ...rest] = await list(args);
  expect(header).toBe(`Absolute path: ${root}`);
  return rest;
}

describe("list_dir", () => {
  it("marks each kind of entry", async () => {
    grow("file", "directory/");
    symlinkSync("file", join(root, "link"));
    symlinkSync("directory", join(root, "linked-directory"));
    execFileSync("mkfifo", [join(root, "pipe")]);
    expect(await entries()).toEqual(["directory/", "file", "link@", "linked-directory@", "pipe?"]);
  });

  it("indents by depth, and goes as deep as it is told", async () => {
    grow("a/b/c/d", "z");
    expect(await entries()).toEqual(["a/", "  b/", "z"]);
    expect(await entries({ depth: 1 })).toEqual(["a/", "z"]);
    expect(await entries({ depth: 3 })).toEqual(["a/", "  b/", "    c/", "z"]);
    expect(await entries({ depth: 99 })).toEqual(["a/", "  b/", "    c/", "      d", "z"]);
  });

  it("sorts whole paths by bytes, so that a.txt stands between a and what is in it", async () => {
    grow("a/x", "a.txt", "a-b", "B", "b", "é", "z", ".hidden", "\u{1f600}", "\uffee");
    expect(await entries()).toEqual([
      ".hidden",
      "B",
      "a/",
      "a-b",
      "a.txt",
      "  x",
      "b",
      "z",
      "é",
      "\uffee",
      "\u{1f600}",
    ]);
  });

  it("enters no symbolic link and leaves nothing out", async () => {
    grow("real/inside", ".git/HEAD", "node_modules/x", ".gitignore");
    writeFileSync(join(root, ".gitignore"), "*\n");
    symlinkSync("real", join(root, "link"));
    symlinkSync("/", join(root, "everything"));
    expect(await entries()).toEqual([
      ".git/",
      "  HEAD",
      ".gitignore",
      "everything@",
      "link@",
      "node_modules/",
      "  x",
      "real/",
      "  inside",
    ]);
  });

  it("gives 25 entries of two levels unless told otherwise", async () => {
    grow(...Array.from({ length: 40 }, (_, index) => `f${index + 100}`));
    const found = await entries();
    expect(found).toHaveLength(26);
    expect(found.at(-1)).toBe("More than 25 entries found");
  });

  it.each([
    [{ limit: 3 }, ["a", "b", "c", "More than 3 entries found"]],
    [{ limit: 5 }, ["a", "b", "c", "d", "e"]],
    [{ offset: 4, limit: 1 }, ["d", "More than 1 entries found"]],
    [{ offset: 4, limit: 9 }, ["d", "e"]],
    [{ offset: 5 }, ["e"]],
    [{ limit: 9_007_199_254_740_991 }, ["a", "b", "c", "d", "e"]],
  ])("gives the page %j of five entries", async (args, expected) => {
    grow("e", "d", "c", "b", "a");
    expect(await entries(args)).toEqual(expected);
  });

  it.each([
    [{ offset: 0 }, "offset must be a 1-indexed entry number"],
    [{ limit: 0 }, "limit must be greater than zero"],
    [{ depth: 0 }, "depth must be greater than zero"],
    [{ offset: 0, limit: 0, depth: 0, dir_path: "x" }, "offset must be a 1-indexed entry number"],
    [{ limit: 0, depth: 0, dir_path: "x" }, "limit must be greater than zero"],
    [{ depth: 0, dir_path: "x" }, "depth must be greater than zero"],
    [{ dir_path: "x" }, "dir_path must be an absolute path"],
    [{ offset: 2 }, "offset exceeds directory entry count"],
    [{ dir_path: "/proc/nowhere" }, "failed to read directory: No such file or directory (os error 2)"],
    [{ dir_path: "/etc/passwd" }, "failed to read directory: Not a directory (os error 20)"],
    [{ dir_path: "/a\0b" }, "failed to read directory: file name contained an unexpected NUL byte"],
  ])("answers %j with its text", async (args, text) => {
    grow("one");
    const output = await tools.get("list_dir").execute({ dir_path: root, ...args });
    expect(output).toEqual({ content: text, success: false });
  });

  it("shows of an empty directory its path alone, whatever the offset", async () => {
    expect(await list()).toEqual([`Absolute path: ${root}`]);
    expect(await list({ offset: 9 })).toEqual([`Absolute path: ${root}`]);
  });

  it("prints the path as it was asked for", async () => {
    grow("x/");
    expect(await list({ dir_path: `${root}/x/..//` })).toEqual([`Absolute path: ${root}/x/..//`, "x/"]);
  });

  it("prints names as they are, with newlines and escape bytes, and replaces what is no UTF-8", async () => {
    grow("a\nb", "c\x1b[2J");
    mkdirSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.of(0xff)]));
    writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.of(0xff), Buffer.from("/in")]), "");
    expect((await entries()).join("\n")).toBe("a\nb\nbad\ufffd/\n  in\nc\x1b[2J");
  });

  it("sorts what is no UTF-8 as what it is replaced with", async () => {
    const names = [Buffer.from("\uffff"), Buffer.of(0xff), Buffer.from("\uffee")];
    const registry = registryOver(async (_, { onEntries }) => {
      onEntries(names.map((nameBytes) => ({ nameBytes, type: "file" })));
    });
    const { content } = await registry.get("list_dir").execute({ dir_path: "/" });
    expect(content).toBe("Absolute path: /\n\uffee\n\ufffd\n\uffff");
  });

  it("cuts names at 500 bytes, and sorts by as much of the path", async () => {
    const names = [Buffer.from(`${"x".repeat(499)}é`), Buffer.from("y".repeat(700))];
    const registry = registryOver(async (_, { onEntries }) => {
      onEntries(names.map((nameBytes) => ({ nameBytes, type: "file" })));
    });
    const { content } = await registry.get("list_dir").execute({ dir_path: "/" });
    expect(content).toBe(`Absolute path: /\n${"x".repeat(499)}\n${"y".repeat(500)}`);
  });

  it.each<[string, ErrorCode, string]>([
    [
      "fails when a directory below may not be read",
      "file.not-permitted",
      "failed to read directory: refused",
    ],
    [
      "takes a directory that has gone meanwhile as empty",
      "file.not-found",
      `Absolute path: ${root}\nbelow/`,
    ],
    ["takes one that has become a file as empty", "file.not-directory", `Absolute path: ${root}\nbelow/`],
  ])("%s", async (_, code, expected) => {
    grow("below/");
    const list: ToolFiles["list"] = (path, options) =>
      typeof path === "string"
        ? hostFiles.list(path, options)
        : Promise.reject(new BrigError("refused", { code }));
    const { content } = await registryOver(list).get("list_dir").execute({ dir_path: root });
    expect(content).toBe(expected);
  });

  it("agrees with a slow listing on every page of random trees", async () => {
    const name = fc.constantFrom("a", "b", "a.b", "A", "é", "a-", "zz");
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
    const page = fc.integer({ min: 1, max: 8 });
    await fc.assert(
      fc.asyncProperty(fc.array(path, { maxLength: 12 }), page, page, page, async (paths, ...numbers) => {
        const [offset = 1, limit = 1, depth = 1] = numbers;
        const { list, all } = fakeTree(paths, depth);
        const { content } = await registryOver(list)
          .get("list_dir")
          .execute({ dir_path: "/t", offset, limit, depth });
        const shown = all.slice(offset - 1, offset - 1 + limit);
        const isMore = all.length > offset - 1 + limit;
        const expected =
          all.length > 0 && offset > all.length
            ? "offset exceeds directory entry count"
            : [
                "Absolute path: /t",
                ...shown,
                ...(isMore ? [`More than ${shown.length} entries found`] : []),
              ].join("\n");
        expect(content).toBe(expected);
      }),
      { numRuns: runs({ short: 50, deep: 1500 }) },
    );
  });

  it("finds its page among 200 000 entries that come in no order", async () => {
    const batches = Array.from({ length: 2000 }, (_, batch) =>
      Array.from({ length: 100 }, (_, index) => `${(batch * 7919 + index * 104_729) % 1_000_003}`),
    );
    const crowd = registryOver(async (_, { onEntries }) => {
      for (const names of batches)
        onEntries(names.map((name) => ({ nameBytes: Buffer.from(name), type: "file" })));
    });
    const page = { dir_path: "/crowd", offset: 101, limit: 50 };
    const { content } = await crowd.get("list_dir").execute(page);
    const expected = batches.flat().sort().slice(100, 150);
    expect(content.split("\n").slice(1)).toEqual([...expected, "More than 50 entries found"]);
  });
});

describe("listDir", () => {
  it("takes paths from a directory and fails by typed errors", async () => {
    grow("sub/file");
    expect(await tools.get("listDir").execute({ path: "sub" })).toEqual({
      content: `Absolute path: ${root}/sub\nfile`,
      success: true,
    });
    const fail = (args: object) => tools.get("listDir" as string).execute(args);
    await expect(fail({ path: "missing" })).rejects.toMatchObject({ code: "file.not-found" });
    await expect(fail({ path: "sub/file" })).rejects.toMatchObject({ code: "file.not-directory" });
    await expect(fail({ path: "sub", depth: 0 })).rejects.toMatchObject({ code: "tool.invalid-input" });
  });
});

/** A tree of directories, the ends of the paths being files, and its listing made the slow way. */
function fakeTree(paths: readonly string[], depth: number) {
  const types = new Map<string, string>();
  for (const path of paths) {
    const names = path.split("/");
    for (let count = 1; count < names.length; count++)
      types.set(names.slice(0, count).join("/"), "directory");
    if (!types.has(path)) types.set(path, "file");
  }
  const all = [...types.keys()]
    .filter((path) => path.split("/").length <= depth)
    .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    .map((path) => {
      const names = path.split("/");
      return `${"  ".repeat(names.length - 1)}${names.at(-1)}${types.get(path) === "directory" ? "/" : ""}`;
    });
  const list: ToolFiles["list"] = async (path, { onEntries }) => {
    const directory = Buffer.from(path as string).toString();
    for (const [key, type] of types) {
      const at = key.lastIndexOf("/");
      const parent = at === -1 ? "/t" : `/t/${key.slice(0, at)}`;
      if (parent === directory) onEntries([{ nameBytes: Buffer.from(key.slice(at + 1)), type }]);
    }
  };
  return { list, all };
}

function registryOver(list: ToolFiles["list"]) {
  const spawn = () => Promise.reject(new Error("nothing is spawned"));
  return createToolRegistry({ spawn, files: { ...new MemorySandbox().files, list } }, { cwd: "/" });
}
