import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isRefusedByGit, type PatchSide, unifiedText } from "../../../../src/sandbox/changes/patch.js";
import { runs } from "../../../support/fuzz.js";

let directory = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-unified-text-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

const file = (text: string | Buffer, gitMode: PatchSide["gitMode"] = "100644"): PatchSide => ({
  gitMode,
  content: Buffer.from(text),
});

describe("what git makes of a patch", () => {
  it.each([
    ["a new file", null, file("one\ntwo\n")],
    ["a new file without a line break at its end", null, file("one\ntwo")],
    ["a new empty file", null, file("")],
    ["a deleted file", file("one\n"), null],
    ["a changed line", file("one\ntwo\nthree\n"), file("one\n2\nthree\n")],
    ["a line break that is gone", file("one\n"), file("one")],
    ["line breaks of Windows", file("one\r\ntwo\r\n"), file("one\r\n2\r\n")],
    ["a file made executable", file("one\n"), file("one\n", "100755")],
    ["a file changed and made executable", file("one\n"), file("two\n", "100755")],
    ["a new symbolic link", null, file("../elsewhere", "120000")],
    ["a symbolic link that leads elsewhere", file("a", "120000"), file("b", "120000")],
    ["other line separators", file("a\u2028b\u0085c\fd\re\n"), file("a\u2028b\u0085c\fd\re!\n")],
    ["a byte order mark", file("\ufeffone\n"), file("\ufefftwo\n")],
    ["a file that becomes a symbolic link", file("one\n"), file("../elsewhere", "120000")],
    ["a symbolic link that becomes a file", file("../elsewhere", "120000"), file("one\n", "100755")],
  ])("%s", async (_name, before, after) => {
    await expectGitToAgree("some file.txt", before, after);
  });

  it.each<[string, PatchSide | null, PatchSide | null]>([
    ["a new binary file", null, file(Buffer.from([0, 1, 2]))],
    ["a deleted binary file", file(Buffer.from([0])), null],
    ["a changed binary file", file(Buffer.from([0, 1])), file(Buffer.alloc(200, 7).fill(0, 9, 12), "100755")],
    ["a text that becomes binary", file("text\n"), file(Buffer.from("te\0xt\n"))],
    ["a binary file that is empty then", file(Buffer.from("te\0xt\n")), file("")],
    [
      "bytes that are not UTF-8",
      file(Buffer.from([0x61, 0xff, 0x0a])),
      file(Buffer.from([0x62, 0xfe, 0x0a])),
    ],
    ["a NUL after much text", file("x\n".repeat(9000)), file(`${"x\n".repeat(9000)}\0`)],
    ["a link to bytes that are not UTF-8", null, file(Buffer.from([0x61, 0xff]), "120000")],
    ["a content of many lines of digits", null, file(Buffer.from(randomBytes(100_000)))],
  ])("%s", async (_name, before, after) => {
    await expectGitToAgree("some file.bin", before, after);
  });

  it.each([
    ...["with space", 'quo"te', "back\\slash", "tab\there", "line\nbreak", "ünï", "-dash", "a b/c d"],
    ..." end ,\x7f,\r,\x01,a/ b/ a,b/x,.gitignore".split(","),
  ])("a file called %j", async (name) => {
    await expectGitToAgree(name, null, file("x\n"));
    await expectGitToAgree(name, file("x\n"), file("y\n"));
  });

  it.each<[string, string]>([
    ["a byte that is not UTF-8", "caf\xe9"],
    ["such a byte, a quote and a blank", 'd\xff/"x y'],
    ["the rest of a character", "\xa9x"],
  ])("a file with %s in its name", async (_name, latin1) => {
    const name = Buffer.from(latin1, "latin1");
    await expectGitToAgree(name, null, file("x\n"));
    await expectGitToAgree(name, file("x\n"), file(Buffer.from([0])));
    await expectGitToAgree(name, file(""), null);
  });

  it("texts with nothing in common, which take too long to compare", async () => {
    // Two hundred more added and removed lines than are searched.
    const lines = (word: string) => Array.from({ length: 2_100 }, (_, at) => `${word} ${at}`).join("\n");
    await expectGitToAgree("big", file(lines("old")), file(`${lines("new")}\n`));
  });

  it("any two texts of few lines", async () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "", " ", "\\ No newline", "@@ -1 +1 @@", "+", "-"), { maxLength: 8 })
      .map((lines) => lines.join("\n"));
    // Many pairs in one patch, because what takes time is to start git.
    const pairs = fc.array(fc.tuple(text, text), { minLength: 40, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(pairs, async (pairs) => {
        const changes = pairs
          .map(([before, after], at) => ({ name: `f${at}`, before: file(before), after: file(after) }))
          .filter(({ before, after }) => !before.content.equals(after.content));
        await expectGitToAgreeOn(changes);
      }),
      { numRuns: runs({ short: 1, deep: 50 }) },
    );
  });
});

it.each([
  ["a NUL", Buffer.from("a\0b")],
  ["bytes that are not UTF-8", Buffer.from([0x61, 0xff, 0x0a])],
])("a file with %s is binary, and may only be named", (_name, content) => {
  const sides = { path: "x", before: file(content), after: file("text\n") };
  expect(unifiedText(sides)).toMatchObject({
    kind: "binary",
    text: expect.stringContaining("GIT binary patch"),
  });
  const { text } = unifiedText(sides, { binary: "named" });
  expect(text).toBe("diff --git a/x b/x\nBinary files a/x and b/x differ\n");
  const gone = unifiedText({ ...sides, after: null }, { binary: "named" });
  expect(gone.text).toBe(
    "diff --git a/x b/x\ndeleted file mode 100644\nBinary files a/x and /dev/null differ\n",
  );
});

it("a binary patch can be taken back", async () => {
  const [before, after] = [file(Buffer.from([0, 1])), file(Buffer.from([0, 2, 3]))];
  const { text } = unifiedText({ path: "x", before, after });
  await place(Buffer.from(join(directory, "x")), after);
  await execa("git", ["apply", "-R", "-"], { cwd: directory, env: outside(), input: text });
  expect(await found(Buffer.from(join(directory, "x")))).toEqual(before);
});

describe("a name that git refuses", () => {
  const refused = [
    ".git",
    "a/.git/config",
    ".GIT",
    "git~1/x",
    ".git. ",
    ".git::$INDEX_ALLOCATION",
    "a\\.git\\b",
  ];
  it.each(refused)("%j is known, since a patch with it applies to nothing", async (name) => {
    expect(isRefusedByGit(Buffer.from(name), { isLink: false })).toBe(true);
    await expect(expectGitToAgree(name, null, file("x\n"))).rejects.toThrow(/invalid path/);
  });

  it("may be one for links only", async () => {
    expect(isRefusedByGit(Buffer.from("a/.gitmodules"), { isLink: true })).toBe(true);
    await expect(expectGitToAgree(".gitmodules", null, file("x", "120000"))).rejects.toThrow(/invalid path/);
    expect(isRefusedByGit(Buffer.from("a/.gitmodules"), { isLink: false })).toBe(false);
    await expectGitToAgree(".gitmodules", null, file("x"));
  });

  it.each([".github", "x.git", ".git2", "git~2", ".gitignore", "a.git/b"])("is not %j", async (name) => {
    expect(isRefusedByGit(Buffer.from(name), { isLink: true })).toBe(false);
    await expectGitToAgree(name, null, file("x\n"));
  });
});

interface Change {
  name: string | Buffer;
  before: PatchSide | null;
  after: PatchSide | null;
}

async function expectGitToAgree(name: string | Buffer, before: PatchSide | null, after: PatchSide | null) {
  await expectGitToAgreeOn([{ name, before, after }]);
}

/** Applies the patches together to the states before, and expects the states after. */
async function expectGitToAgreeOn(changes: readonly Change[]) {
  const cwd = join(directory, "tree");
  await rm(cwd, { recursive: true, force: true });
  await mkdir(cwd);
  const pathOf = (name: string | Buffer) =>
    Buffer.concat([Buffer.from(`${cwd}/`), Buffer.from(name as string)]);
  const patches: string[] = [];
  for (const { name, before, after } of changes) {
    if (before !== null) await place(pathOf(name), before);
    patches.push(unifiedText({ path: name, before, after }).text);
  }
  const input = patches.join("");
  await execa("git", ["apply", "--whitespace=nowarn", "-"], { cwd, env: outside(), input });
  for (const { name, after } of changes) expect(await found(pathOf(name))).toEqual(after);
}

/** Without a repository above it, which would limit what a patch applies to. */
function outside() {
  return { GIT_CEILING_DIRECTORIES: directory };
}

async function place(path: Buffer, { gitMode, content }: PatchSide) {
  await mkdir(path.subarray(0, path.lastIndexOf("/")), { recursive: true });
  if (gitMode === "120000") return await symlink(content, path);
  await writeFile(path, content);
  if (gitMode === "100755") await chmod(path, 0o755);
}

async function found(path: Buffer): Promise<PatchSide | null> {
  const target = await readlink(path, { encoding: "buffer" }).catch(() => null);
  if (target !== null) return { gitMode: "120000", content: target };
  const content = await readFile(path).catch(() => null);
  if (content === null) return null;
  const isExecutable = ((await stat(path)).mode & 0o100) !== 0;
  return { gitMode: isExecutable ? "100755" : "100644", content };
}
