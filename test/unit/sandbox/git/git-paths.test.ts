import { execFileSync } from "node:child_process";
import { linkSync, lstatSync, readFileSync } from "node:fs";
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { parseGitIndex } from "../../../../src/sandbox/git/git-index.js";
import { findGitPaths } from "../../../../src/sandbox/git/git-paths.js";
import { userGitConfig } from "../../../../src/sandbox/git/user-config.js";
import { compiledFixture } from "../../../support/compiled-fixture.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let folder: string;
let work: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  folder = made.path;
  work = join(folder, "work");
  await mkdir(work);
});

function git(...args: string[]): string {
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
  const env = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", [...identity, ...args], { cwd: work, env, encoding: "utf8", stdio: "pipe" });
}

async function make(path: string, content = ""): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), content);
}

/** Held paths of the writable directory, with `?` behind what is not there yet, and whether it is to be a file. */
async function held(
  root = work,
  variables: Record<string, string> = {},
  unprotected: readonly string[] = [],
): Promise<string[]> {
  const top = { path: join(root, ".git"), identity: null };
  const places = await findGitPaths({
    ...{ writable: [root], protectedPaths: [top], homeDirectory: folder },
    ...{ userConfig: userGitConfig(variables, folder), unprotected },
  });
  const lines = places.map(
    ({ path, identity, isEmptyFile }) =>
      path.slice(root.length + 1) + (isEmptyFile ? " (file)" : "") + (identity === null ? "?" : ""),
  );
  return lines.filter((line) => line !== ".git?").sort();
}

const refusal = (root = work, variables: Record<string, string> = {}) =>
  held(root, variables).then(
    () => "held",
    (error: Error) => error.message,
  );

const gitlink = (path: string) =>
  git("update-index", "--add", "--cacheinfo", `160000,${"1".repeat(40)},${path}`);

describe("a submodule", () => {
  it.each([2, 3, 4])("is held by its .git, or by what could become it: index version %i", async (version) => {
    git("init", "-q");
    for (const name of ["used/old", "used/filled", "empty", "gone/deep", "file"]) gitlink(name);
    await make("work/long-name/that/shares/a/prefix.txt");
    await make("work/used/old/.git/HEAD");
    await make("work/used/filled/x");
    await make("work/file");
    await mkdir(join(work, "empty"));
    git("add", "-f", "long-name");
    await make("work/noted");
    if (version === 3) git("add", "-N", "--", "noted");
    git("update-index", "--index-version", String(version));
    expect(await held()).toEqual(["empty", "file", "gone?", "used/filled/.git?", "used/old/.git"]);
  });

  it("is found in a split index, in a repository of SHA-256, and in the submodule of a submodule", async () => {
    git("init", "-q");
    gitlink("split");
    git("update-index", "--split-index");
    git("init", "-q", "--object-format=sha256", "other");
    git("-C", "other", "update-index", "--add", "--cacheinfo", `160000,${"1".repeat(64)},inner`);
    expect(await held()).toEqual(["other/.git", "other/inner?", "split?"]);
  });

  it("of a repository above the workspace is held where it lies in it", async () => {
    git("init", "-q");
    gitlink("pkg/sub");
    gitlink("elsewhere");
    await mkdir(join(work, "pkg"));
    expect(await held(join(work, "pkg"))).toEqual(["sub?"]);
  });

  it("behind a link that a command could replace keeps the sandbox from starting", async () => {
    git("init", "-q");
    gitlink("way/sub");
    await mkdir(join(work, "real"));
    await symlink("real", join(work, "way"));
    expect(await refusal()).toContain("symbolic link");
  });

  it("cannot be told from a sparse index, which keeps the sandbox from starting", async () => {
    git("init", "-q");
    await make("work/a/x");
    await make("work/b/x");
    git("add", ".");
    git("commit", "-q", "-m", "x");
    git("sparse-checkout", "init", "--cone", "--sparse-index");
    git("sparse-checkout", "set", "a");
    expect(await refusal()).toContain("sparse");
  });
});

describe("a repository further down", () => {
  it("is held, with or without a work tree, but not where it is under version control", async () => {
    git("init", "-q");
    git("init", "-q", "a/b/nested");
    git("init", "-q", "--bare", "store.git");
    git("init", "-q", "--bare", "test/data.git");
    await make("work/apart/HEAD", "ref: refs/heads/main\n");
    await make("work/apart/commondir", "data\n");
    await make("work/apart/data/config");
    git("add", "-f", "test");
    await make("work/leaf/.git", "gitdir: ../a/b/nested/.git/worktrees/x\n");
    await mkdir(join(work, "a/b/nested/.git/worktrees/x"), { recursive: true });
    expect(await held()).toEqual(["a/b/nested/.git", "apart", "leaf/.git", "store.git"]);
  });

  it("is not the workspace itself, and not a part of one that is held", async () => {
    git("init", "-q", "--bare");
    expect(await held()).toEqual([]);
  });

  it("in a repository's own directory is read like that one", async () => {
    git("init", "-q");
    git("init", "-q", "--bare", ".git/modules/inner");
    await make(
      "work/.git/modules/inner/config",
      "[core]\n\thooksPath = ../../../hooks\n[include]\n\tpath = ../../../more\n",
    );
    expect(await held()).toEqual(["hooks?", "more (file)?"]);
  });

  it("whose name is not UTF-8 keeps the sandbox from starting, and one beside such a name does not", async () => {
    await mkdir(Buffer.from(`${work}/caf\xe9/empty`, "latin1"), { recursive: true });
    await mkdir(join(work, "über/.git/x"), { recursive: true });
    expect(await held()).toEqual(["über/.git"]);
    await mkdir(Buffer.from(`${work}/caf\xe9/empty/.git`, "latin1"));
    expect(await refusal()).toContain("not UTF-8");
  });

  it("that is a link keeps the sandbox from starting", async () => {
    await mkdir(join(work, "elsewhere"));
    await mkdir(join(work, "sub"));
    await symlink("../elsewhere", join(work, "sub/.git"));
    expect(await refusal()).toContain("symbolic link");
    const dotGit = join(work, "sub/.git");
    await expect(held()).rejects.toMatchObject({
      hint: expect.stringContaining(`--unprotected "${dotGit}"`),
    });
    git("init", "-q", "other");
    expect(await held(work, {}, [dotGit])).toEqual(["other/.git"]);
  });

  it.each([
    ["gitdir: ..\n", "[core]"],
    ["gitdir: real\n", "[core]\n hooksPath = .."],
    ["gitdir: real\n", `[include]\n path = ../..`],
  ])(
    "that leads to its parent keeps the sandbox from starting, unless it is given up: %j %j",
    async (pointer, config) => {
      await make("work/nested/.git", pointer);
      await make("work/nested/real/config", config);
      const dotGit = join(work, "nested/.git");
      await expect(held()).rejects.toMatchObject({
        hint: expect.stringContaining(`--unprotected "${dotGit}"`),
      });
      expect(await held(work, {}, [dotGit])).toContain("nested/.git");
      await expect(held(work, {}, [join(work, "other/.git")])).rejects.toMatchObject({
        code: "policy.not-enforced",
      });
    },
  );
});

describe("what a repository's files lead to", () => {
  beforeEach(() => void git("init", "-q"));
  const config = (text: string) => writeFile(join(work, ".git/config"), text);

  it("is held: included configuration, conditions or not, there or not, and what that includes", async () => {
    await config(
      '[include]\n path = ../one\n[includeIf "gitdir:x"] path = "~/work/two" ; a word\n[include]path=../later/x\n',
    );
    await make("work/one", "[INCLUDE]\n\tpath = \\\nthree # and so on\n");
    await make("work/two");
    await make("work/three");
    expect(await held()).toEqual(["later?", "one", "three", "two"]);
  });

  it("is held: hooks elsewhere, programs that settings name, and files that these name", async () => {
    await config(
      '[core]\nhooksPath = .husky/_\nfsmonitor = "tools/watch" -v\n[filter "x"]\nclean = sh scripts/clean %f && later/x\n' +
        "[diff]\nexternal = missing/tool\n[alias]\nx = !run/it src\n[user]\nname = data/name\n",
    );
    for (const name of ["tools/watch", "scripts/clean", "run/it", "data/name", "src/main.c"])
      await make(`work/${name}`);
    expect(await held()).toEqual([".husky?", "missing?", "run/it", "scripts/clean", "tools/watch"]);
  });

  it("is held: links out of it, to what is there and what is not", async () => {
    await make("work/scripts/pre-push");
    await make("work/info/exclude");
    await rm(join(work, ".git/info"), { recursive: true });
    await symlink("../../scripts/pre-push", join(work, ".git/hooks/pre-push"));
    await symlink("../../scripts/later", join(work, ".git/hooks/post-commit"));
    await symlink("../info", join(work, ".git/info"));
    expect(await held()).toEqual(["info", "scripts/later (file)?", "scripts/pre-push"]);
  });

  it("is held: borrowed objects, quoted or not, and what these borrow", async () => {
    await make("work/.git/objects/info/alternates", '# a word\n../../pool\n"../../\\160ool-2"\n');
    await make("work/pool/info/alternates", "../pool-3\n");
    await mkdir(join(work, "pool-2"));
    await mkdir(join(work, "pool-3"));
    expect(await held()).toEqual(["pool", "pool-2", "pool-3"]);
  });

  it("keeps the sandbox from starting where a command could change the way there", async () => {
    await make("work/real/shared");
    await symlink("real", join(work, "way"));
    await config("[include]\npath = ../way/shared\n");
    expect(await refusal()).toContain("symbolic link");
    await config("[include]\npath = ../real/../real/shared\n");
    expect(await held()).toEqual(["real/shared"]);
    await mkdir(join(work, "other"));
    await config("[include]\npath = ../other/../real/shared\n");
    expect(await refusal()).toContain('by way of "');
    await config("[core]\nhooksPath = .\n");
    expect(await refusal()).toContain("contains all of");
  });

  it("is nothing to hold outside, whatever is there", async () => {
    await make("outside/config", "[include]\npath = config\n");
    await config(
      `[include]\npath = ../../outside/config\npath = /dev/null\n[core]\nhooksPath = ${folder}/hooks\n`,
    );
    expect(await refusal()).toMatch(/held|not a small regular file/);
    await config(`[include]\npath = ../../outside/config\n[core]\nhooksPath = ${folder}/hooks\n`);
    expect(await held()).toEqual([]);
  });
});

describe("the user's own configuration of git", () => {
  const userConfig = (text: string) => make(".gitconfig", text);

  it.each([
    [".gitconfig", {}],
    [".config/git/config", {}],
    ["xdg/git/config", { XDG_CONFIG_HOME: "xdg" }],
    ["global", { GIT_CONFIG_GLOBAL: "global" }],
    ["system", { GIT_CONFIG_SYSTEM: "system" }],
  ])("is obeyed in %s", async (file, variables) => {
    git("init", "-q");
    await make(file, "[core]\nhooksPath = .hooks-of-ours\n");
    const absolute = Object.fromEntries(
      Object.entries(variables).map(([name, path]) => [name, join(folder, path)]),
    );
    expect(await held(work, absolute)).toEqual([".hooks-of-ours?"]);
  });

  it("is obeyed in every work tree, and where a repository may be made later", async () => {
    await userConfig(
      '[core]\nhooksPath = .hooks\nfsmonitor = tools/watch\n[alias]\nx = !scripts/x now\n[filter "y"]\nclean = sh y.sh\n',
    );
    await make("work/y.sh");
    await make("work/tools/other");
    expect(await held()).toEqual([".hooks?", "scripts?", "tools/watch?", "y.sh"]);
    git("init", "-q", "nested");
    expect(await held()).toEqual([
      ".hooks?",
      "nested/.git",
      "nested/.hooks?",
      "nested/scripts?",
      "nested/tools?",
      "scripts?",
      "tools/watch?",
      "y.sh",
    ]);
    git("init", "-q", "..");
    expect(await held()).toEqual(["nested/.git", "nested/.hooks?", "nested/scripts?", "nested/tools?"]);
  });

  it("is obeyed with what it includes and in variables, and held where it lies in the workspace", async () => {
    git("init", "-q");
    await userConfig(`[include]\npath = ${work}/dotfiles/gitconfig\n[includeIf "gitdir:x"]\npath = more\n`);
    await make("work/dotfiles/gitconfig", "[core]\nsshCommand = bin/ssh\n");
    await make("more", "[diff]\nexternal = bin/diff\n");
    const variables = {
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "Core.PAGER",
      GIT_CONFIG_VALUE_0: "bin/pager",
    };
    await make("work/bin/x");
    expect(await held(work, { ...variables, GIT_CONFIG_KEY_1: "x.y" })).toEqual([
      "bin/diff?",
      "bin/pager?",
      "bin/ssh?",
      "dotfiles/gitconfig",
    ]);
  });

  it("keeps nothing from being changed that is no path, or outside", async () => {
    git("init", "-q");
    await userConfig(
      `[core]\neditor = vim\npager = less -R\n[alias]\nlg = log --graph\nroot = !./ && pwd\n[filter "lfs"]\nclean = git-lfs clean -- %f\n[gpg]\nprogram = ${folder}/gpg\n`,
    );
    for (const name of ["vim", "less", "log", "clean", "git-lfs", "pwd"]) await make(`work/${name}`);
    expect(await held(work, { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_COUNT: "many" })).toEqual([]);
  });
});

describe("directories of telling names", () => {
  it("are found with their inode numbers, and nothing below a repository", async () => {
    for (const name of [".vscode/x", "a/.github/workflows/y", ".git/.vscode/z", "plain/z"])
      await make(`work/${name}`);
    const found: [string, string][] = [];
    await findGitPaths({
      ...{ writable: [work], protectedPaths: [], homeDirectory: null },
      onTelling: ({ path, ino }) => void found.push([path.slice(work.length + 1), ino]),
    });
    const expected = [".vscode", "a/.github", "a/.github/workflows"];
    expect(found.toSorted()).toEqual(expected.map((path) => [path, String(lstatSync(join(work, path)).ino)]));
  });
});

describe("a hard link", () => {
  beforeEach(() => void git("init", "-q"));

  it("to a protected file keeps the sandbox from starting, wherever in a writable directory it is", async () => {
    await make("work/deep/down/x");
    linkSync(join(work, ".git/config"), join(work, "deep/down/same"));
    expect(await refusal()).toContain("deep/down/same");
  });

  it("between repositories that are both held, or to a place outside, is of no matter", async () => {
    await make("work/x");
    git("add", "x");
    git("commit", "-q", "-m", "x");
    git("clone", "-q", "--local", ".", "copy");
    git("clone", "-q", "--local", ".", "../outside");
    expect(await held()).toEqual(["copy/.git"]);
  });
});

const program = compiledFixture("find-git-paths.ts");

describe("a directory that cannot be listed", () => {
  it.skipIf(process.getuid?.() !== 0)(
    "is of no matter where no command could list it either [needs root]",
    async () => {
      git("init", "-q");
      await mkdir(join(work, "closed/.git"), { recursive: true });
      await chmod(join(work, "closed"), 0o700);
      await chmod(folder, 0o755);
      await chmod(dirname(program.path), 0o755);
      const result = execFileSync(process.execPath, [program.path, "1234", work], { encoding: "utf8" });
      expect(result.trim()).toMatch(/^[0-9]+$/);
    },
  );
});

describe("an index", () => {
  it("that is cut off anywhere is no index, and none makes the parser fail", () => {
    git("init", "-q");
    for (const name of ["a/b", "a/bc", "d"]) gitlink(name);
    for (const version of ["2", "4"]) {
      git("update-index", "--index-version", version);
      const bytes = readFileSync(join(work, ".git/index"));
      expect(parseGitIndex(bytes, 20)?.gitlinks).toEqual(["a/b", "a/bc", "d"]);
      const entriesEnd = bytes.length - 20;
      for (let length = 0; length < entriesEnd; length++) {
        const cut = parseGitIndex(Buffer.concat([bytes.subarray(0, length), Buffer.alloc(20)]), 20);
        expect(cut === null || cut.gitlinks.length === 3 || length > entriesEnd - 64).toBe(true);
      }
      for (let at = 4; at < bytes.length; at++) {
        const broken = Buffer.from(bytes);
        broken[at] = 255;
        expect(() => parseGitIndex(broken, 20)).not.toThrow();
      }
    }
  });
});
