import { chmod, mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PatchSide, unifiedText } from "../../../../src/sandbox/changes/unified-text.js";
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
  ])("%s", async (_name, before, after) => {
    await expectGitToAgree("some file.txt", before, after);
  });

  it.each(["with space", 'quo"te', "back\\slash", "tab\there", "line\nbreak", "ünï", "-dash", "a b/c d"])(
    "a file called %j",
    async (name) => {
      await expectGitToAgree(name, null, file("x\n"));
      await expectGitToAgree(name, file("x\n"), file("y\n"));
    },
  );

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
])("a file with %s is binary", (_name, content) => {
  const { kind, text } = unifiedText("x", file(content), file("text\n"));
  expect(kind).toBe("binary");
  expect(text).toBe("diff --git a/x b/x\nBinary files a/x and b/x differ\n");
});

interface Change {
  name: string;
  before: PatchSide | null;
  after: PatchSide | null;
}

async function expectGitToAgree(name: string, before: PatchSide | null, after: PatchSide | null) {
  await expectGitToAgreeOn([{ name, before, after }]);
}

/** Applies the patches together to the states before, and expects the states after. */
async function expectGitToAgreeOn(changes: readonly Change[]) {
  const cwd = join(directory, "tree");
  await rm(cwd, { recursive: true, force: true });
  await mkdir(cwd);
  const patches: string[] = [];
  for (const { name, before, after } of changes) {
    if (before !== null) await place(join(cwd, name), before);
    const { kind, text } = unifiedText(name, before, after);
    expect(kind).toBe("text");
    patches.push(text);
  }
  // Without a repository above it, which would limit what a patch applies to.
  const env = { GIT_CEILING_DIRECTORIES: directory };
  await execa("git", ["apply", "--whitespace=nowarn", "-"], { cwd, env, input: patches.join("") });
  for (const { name, after } of changes) expect(await found(join(cwd, name))).toEqual(after);
}

async function place(path: string, { gitMode, content }: PatchSide) {
  await mkdir(dirname(path), { recursive: true });
  if (gitMode === "120000") return await symlink(content.toString(), path);
  await writeFile(path, content);
  if (gitMode === "100755") await chmod(path, 0o755);
}

async function found(path: string): Promise<PatchSide | null> {
  const target = await readlink(path).catch(() => null);
  if (target !== null) return { gitMode: "120000", content: Buffer.from(target) };
  const content = await readFile(path).catch(() => null);
  if (content === null) return null;
  const isExecutable = ((await stat(path)).mode & 0o100) !== 0;
  return { gitMode: isExecutable ? "100755" : "100644", content };
}
