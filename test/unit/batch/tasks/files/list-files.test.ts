import { chmod, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import {
  type ListOptions,
  listTaskFiles,
  partsOf,
  taskChecksums,
} from "../../../../../src/batch/tasks/files.js";
import { TaskNotes } from "../../../../../src/batch/tasks/notes.js";
import type { TaskPart } from "../../../../../src/batch/tasks/task.js";
import { directoryWith, type Files, writeFiles } from "../../../../support/task-directories.js";

type Limits = Omit<ListOptions, "notes">;

async function listed(root: string, options: Limits = {}) {
  const notes = new TaskNotes("the-task");
  const tree = await listTaskFiles(root, { notes, ...options });
  return { tree, notes, problems: notes.faults.map(({ file, problem }) => `${file ?? ""}: ${problem}`) };
}

async function listedFiles(files: Files, options: Limits = {}) {
  return await listed(await directoryWith(files), options);
}

const partOf = (path: string): TaskPart => (path.startsWith("tests/") ? "tests" : "settings");

async function checksumOf(root: string) {
  const { tree, problems } = await listed(root);
  expect(problems).toEqual([]);
  return taskChecksums(partsOf(tree.entries(), partOf));
}

describe("the files of a task", () => {
  it("are listed in the same order everywhere, with what brig needs to know of each", async () => {
    const { tree, problems } = await listedFiles({ "b/run.sh": "#!/bin/sh\n", "a.txt": "a", B: null });
    expect(problems).toEqual([]);
    expect([...tree.entries()].map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "directory B",
      "file a.txt",
      "directory b",
      "file b/run.sh",
    ]);
    expect(tree.below("b")).toMatchObject([{ bytes: 10, isExecutable: true }]);
    expect(tree.hasFile("a.txt")).toBe(true);
    expect(tree.hasFile("b")).toBe(false);
    expect(tree.hasDirectory("b")).toBe(true);
  });

  it("are only those that belong to the task", async () => {
    const { tree } = await listedFiles({ "jobs/x": "", "tests/jobs": "" }, { names: ["tests"] });
    expect([...tree.entries()].map(({ path }) => path)).toEqual(["tests", "tests/jobs"]);
  });

  it("may be links within the task, also to nothing", async () => {
    const root = await directoryWith({ "data/one": "1" });
    await symlink("data/one", join(root, "one"));
    await symlink("../missing", join(root, "data/none"));
    const { tree, problems } = await listed(root);
    expect(problems).toEqual([]);
    expect([...tree.entries()].filter(({ kind }) => kind === "link")).toEqual([
      { kind: "link", path: "data/none", target: "../missing" },
      { kind: "link", path: "one", target: "data/one" },
    ]);
  });

  it.each([
    ["by an absolute path", "/etc/passwd"],
    ["to a directory above", "../../x"],
    ["to nothing above", "../none/../../none"],
  ])("may not be links that lead out, %s", async (_, target) => {
    const root = await directoryWith({ "a/b": null });
    await symlink(target, join(root, "a/link"));
    const { tree, problems } = await listed(root);
    expect(problems).toEqual([
      `a/link: is a symbolic link to ${JSON.stringify(target)}, which is outside of the task`,
    ]);
    expect(tree.hasFile("a/link")).toBe(false);
  });

  it("may not be links that lead out by way of another link", async () => {
    const outside = await directoryWith({ "task/a/deep": null, secret: "s" });
    const root = join(outside, "task");
    // By its text it stays in the task; the file system takes "..", after a link, from where the link leads.
    await symlink(".", join(root, "a/deep/here"));
    await symlink("../..", join(root, "a/deep/up"));
    await symlink("a/deep/up/../secret", join(root, "way-out"));
    const { problems } = await listed(root);
    expect(problems).toEqual([
      'way-out: is a symbolic link to "a/deep/up/../secret", which is outside of the task',
    ]);
  });

  it("may not be FIFOs, which would never end", { timeout: 30_000 }, async () => {
    const root = await directoryWith({});
    await execa("mkfifo", [join(root, "instruction.md")]);
    const { problems } = await listed(root);
    expect(problems).toEqual(["instruction.md: is neither a file nor a directory nor a symbolic link"]);
  });

  it("may not have names that a terminal obeys, or that are not UTF-8", async () => {
    const root = await directoryWith({ "tests/a\u001b[31m.py": "", "tests/\u202egpj.py": "" });
    await writeFile(Buffer.concat([Buffer.from(`${root}/x`), Buffer.from([0xff])]), "");
    const { problems } = await listed(root);
    expect(problems).toHaveLength(3);
    for (const problem of problems) expect(problem).toContain("has a name that is not plain UTF-8 text");
  });

  it("may not be too many, too large or too deep", async () => {
    const files = { "a/b/c/d": "12345", e: "12345" };
    expect((await listedFiles(files, { limits: { maxEntries: 3 } })).problems).toEqual([
      "a/b/c: it has more than 3 files",
    ]);
    expect((await listedFiles(files, { limits: { maxBytes: 9 } })).problems).toEqual([
      "e: its files have more than 9 B",
    ]);
    expect((await listedFiles(files, { limits: { maxDepth: 2 } })).problems).toEqual([
      "a/b/c: its directories are nested more than 2 levels deep",
    ]);
  });

  it("are not read if they are huge and empty", { timeout: 30_000 }, async () => {
    const root = await directoryWith({ sparse: "" });
    await truncate(join(root, "sparse"), 64 * 1024 ** 3);
    expect((await listed(root)).problems).toEqual(["sparse: its files have more than 8.0 GiB"]);
  });

  it("are named when they may not be read", async () => {
    const root = await directoryWith({ "tests/a": "" });
    await chmod(join(root, "tests"), 0);
    const { problems } = await listed(root);
    const expected = process.getuid?.() === 0 ? [] : ["tests: cannot be read: permission denied"];
    expect(problems).toEqual(expected);
    await chmod(join(root, "tests"), 0o700);
  });

  it("are not listed to the end once the signal is aborted", async () => {
    const root = await directoryWith({ large: Buffer.alloc(9 * 1024 * 1024) });
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(listed(root, { signal })).rejects.toThrow("enough");
  });
});

describe("the text of a file", () => {
  const text = async (files: Files, path: string) => {
    const { tree, notes } = await listedFiles(files);
    return { text: tree.text(path, notes), problems: notes.faults.map(({ problem }) => problem) };
  };

  it("is read without a byte order mark", async () => {
    expect(await text({ a: "\ufeffeins\r\n" }, "a")).toEqual({ text: "eins\r\n", problems: [] });
  });

  it.each([
    ["is missing", {}, "is missing"],
    ["is a directory", { a: null }, "is a directory and must be a file"],
    ["has 50 MB", { a: Buffer.alloc(50e6, "x") }, "has 48 MiB, which is more than 1.0 MiB"],
    [
      "is not UTF-8",
      { a: Buffer.from([0x61, 0xff]) },
      "is not UTF-8 text: invalid utf-8 sequence of 1 bytes from index 1",
    ],
  ])("is refused if it %s", async (_, files, problem) => {
    expect(await text(files as Files, "a")).toEqual({ text: null, problems: [problem] });
  });

  it("is refused if it is not what was hashed", async () => {
    const root = await directoryWith({ a: "one" });
    const { tree, notes } = await listed(root);
    await writeFiles(root, { a: "two" });
    expect(tree.text("a", notes)).toBeNull();
    expect(notes.faults).toMatchObject([{ file: "a", problem: "was changed while it was read" }]);
  });

  it("is refused if it is a link", async () => {
    const root = await directoryWith({ b: "b" });
    await symlink("b", join(root, "a"));
    const { tree, notes } = await listed(root);
    expect(tree.text("a", notes)).toBeNull();
    expect(notes.faults).toMatchObject([{ problem: "is a symbolic link and must be a file" }]);
  });
});

describe("the checksum", () => {
  const files = { "task.toml": "x = 1", "tests/test.sh": "#!/bin/sh\n", "tests/data": "1" };

  it("is the same wherever and whenever the task was copied to", async () => {
    expect(await checksumOf(await directoryWith(files))).toEqual(
      await checksumOf(await directoryWith(files)),
    );
  });

  it("does not count empty directories, which git does not keep", async () => {
    const [one, other] = [await directoryWith(files), await directoryWith(files)];
    await mkdir(join(other, "tests/empty"));
    expect(await checksumOf(one)).toEqual(await checksumOf(other));
  });

  it.each<[string, (root: string) => Promise<void>]>([
    ["content", (root) => writeFile(join(root, "tests/data"), "2")],
    ["name", (root) => writeFile(join(root, "tests/data2"), "1")],
    ["permission to execute", (root) => chmod(join(root, "tests/data"), 0o755)],
    ["link", (root) => symlink("data", join(root, "tests/link"))],
  ])("changes with a %s, and so does that of the part", async (_, change) => {
    const root = await directoryWith(files);
    const before = await checksumOf(root);
    await change(root);
    const after = await checksumOf(root);
    expect(after.checksum).not.toBe(before.checksum);
    expect(after.parts.tests).not.toBe(before.parts.tests);
    expect(after.parts.settings).toBe(before.parts.settings);
  });
});
