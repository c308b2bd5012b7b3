import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync } from "node:fs";
import { appendFile, cp, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  planRepository,
  type RepositoryRequest,
} from "../../../../src/sandbox/repository/plan-repository.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let folder: string;
let main: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  folder = made.path;
  main = join(folder, "main");
  await mkdir(join(main, "sub/deep"), { recursive: true });
  await writeFile(join(main, "sub/a"), "a");
  git("init", "-q");
  git("add", ".");
  git("commit", "-q", "-m", "first");
});

const identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];

function gitIn(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", [...identity, ...args], { cwd, env, encoding: "utf8", stdio: "pipe" });
}

function git(...args: string[]): string {
  return gitIn(main, ...args);
}

async function plan(workspace: string, wanted: Partial<RepositoryRequest> = {}) {
  const path = join(folder, workspace);
  const { mounts, top, notices } = await planRepository({
    workspace: path,
    visible: [path],
    check: {
      endpoint: "unix:///var/run/docker.sock",
      dockerRootDir: "/var/lib/docker",
      host: { homeDirectory: join(folder, "home") },
    },
    closesSubmounts: true,
    hostUid: process.getuid?.() ?? 0,
    ...wanted,
  });
  const short = (one: string) => one.slice(folder.length + 1);
  return {
    mounts: mounts.map((mount) => `${mount.kind} ${mount.access} ${short(mount.path)}`),
    top: top === null ? null : short(top),
    notices: notices.map(({ message, hint }) => `${message}; ${hint}`.replaceAll(`${folder}/`, "")),
    identities: mounts.map((mount) => mount.identity?.ino),
  };
}

const shown = async (workspace: string) => (await plan(workspace)).mounts;
const refused = async (workspace: string) => {
  const { mounts, notices } = await plan(workspace);
  expect(mounts).toEqual([]);
  expect(notices).toHaveLength(1);
  return notices[0];
};

describe("a repository that lies outside is mounted read-only where it is", () => {
  it("of a linked worktree: the common directory, which has that of the worktree in it", async () => {
    git("worktree", "add", "-q", "../tree");
    const found = await plan("tree");
    expect(found).toMatchObject({ mounts: ["repository ro main/.git"], top: null, notices: [] });
    expect(found.identities).toEqual([String(lstatSync(join(main, ".git")).ino)]);
  });

  it("of a linked worktree whose paths are relative, as newer versions of git write them", async () => {
    git("worktree", "add", "-q", "../tree");
    await writeFile(join(folder, "tree/.git"), "gitdir: ../main/.git/worktrees/tree\n");
    await writeFile(join(main, ".git/worktrees/tree/gitdir"), "../../../../tree/.git\n");
    expect(await shown("tree")).toEqual(["repository ro main/.git"]);
  });

  it("of a submodule: its own directory, and nothing else of the outer repository", async () => {
    gitIn(folder, "clone", "-q", "main", "other");
    git("submodule", "--quiet", "add", "../other", "mod");
    expect(await shown("main/mod")).toEqual(["repository ro main/.git/modules/mod"]);
    git("commit", "-q", "-m", "mod");
    git("worktree", "add", "-q", "../tree");
    gitIn(join(folder, "tree"), "submodule", "--quiet", "update", "--init");
    expect(await shown("tree/mod")).toEqual(["repository ro main/.git/worktrees/tree/modules/mod"]);
  });

  it("of init --separate-git-dir: known by core.worktree, or by the files in its index", async () => {
    git("init", "-q", "--separate-git-dir", "../apart");
    expect(await shown("main")).toEqual(["repository ro apart"]);
    await cp(main, join(folder, "copy"), { recursive: true });
    expect(await refused("copy")).toMatch(/does not name "copy"; .*config core.worktree copy$/);
    git("rm", "-q", "--cached", "-r", ".");
    expect(await refused("main")).toContain("does not name");
    git("config", "core.worktree", main);
    expect(await shown("main")).toEqual(["repository ro apart"]);
  });

  it("above the workspace, and says what git takes for deleted", async () => {
    expect(await plan("main/sub/deep")).toMatchObject({
      mounts: ["repository ro main/.git"],
      top: "main",
      notices: [
        'git in the sandbox sees only "main/sub/deep" of the repository in "main": it takes the other files for deleted; for all of it: -C main',
      ],
    });
    git("worktree", "add", "-q", "../tree");
    expect(await plan("tree/sub")).toMatchObject({
      mounts: ["repository ro tree/.git", "repository ro main/.git"],
      top: "tree",
    });
  });

  it("is none where there is none, where it is visible anyway, and where an empty .git was left", async () => {
    await mkdir(join(folder, "plain/.git"), { recursive: true });
    for (const workspace of ["plain", "main"])
      expect(await plan(workspace)).toMatchObject({ mounts: [], top: null, notices: [] });
    git("worktree", "add", "-q", "tree");
    expect(await plan("main/tree", { visible: [main] })).toMatchObject({ mounts: [], notices: [] });
    await mkdir(join(main, "sub/.git"));
    expect((await plan("main/sub")).top).toBe("main");
  });
});

describe("a .git that a stranger has written shows nothing", () => {
  const point = async (text: string) => {
    await mkdir(join(folder, "evil"), { recursive: true });
    await writeFile(join(folder, "evil/.git"), text);
  };

  it("of a directory that is no repository, nor of one that is that of another directory", async () => {
    await mkdir(join(folder, "keys"));
    await point(`gitdir: ${folder}/keys\n`);
    expect(await refused("evil")).toContain("does not name");
    await point("gitdir: ../main/.git\n");
    expect(await refused("evil")).toContain("does not name");
    await point("not a pointer");
    expect(await refused("evil")).toContain("does not name a git directory");
  });

  it("by way of a directory of its own that names the common directory of another repository", async () => {
    await mkdir(join(folder, "evil/own"), { recursive: true });
    await point("gitdir: own\n");
    await writeFile(join(folder, "evil/own/gitdir"), `${folder}/evil/.git\n`);
    await writeFile(join(folder, "evil/own/HEAD"), "ref: refs/heads/x\n");
    await writeFile(join(folder, "evil/own/commondir"), `${main}/.git\n`);
    expect(await refused("evil")).toContain("does not name");
    await mkdir(join(folder, "evil/worktrees"));
    await rename(join(folder, "evil/own"), join(folder, "evil/worktrees/own"));
    await point("gitdir: worktrees/own\n");
    expect(await refused("evil")).toContain("does not name");
  });

  it("of a worktree of somebody else", async () => {
    git("worktree", "add", "-q", "../tree");
    await cp(join(folder, "tree"), join(folder, "evil"), { recursive: true });
    expect(await refused("evil")).toMatch(/does not name "evil"; run: git -C .*evil worktree repair/);
  });

  it("by links: as the .git, on the way to it, or in the place of its directory", async () => {
    await mkdir(join(folder, "evil"));
    await symlink("../main/.git", join(folder, "evil/.git"));
    expect(await refused("evil")).toContain("symbolic link");
    git("worktree", "add", "-q", "../tree");
    await symlink("main", join(folder, "way"));
    await writeFile(join(folder, "tree/.git"), `gitdir: ${folder}/way/.git/worktrees/tree\n`);
    expect(await refused("tree")).toContain("symbolic link");
  });

  it("with a file that names its own index, made of a hard link", async () => {
    git("init", "-q", "--separate-git-dir", "../apart");
    await mkdir(join(folder, "evil/sub"), { recursive: true });
    execFileSync("ln", [join(main, "sub/a"), join(folder, "evil/sub/a")]);
    // A refresh may leave an index as it is within one second.
    git("rm", "-q", "--cached", "-r", ".");
    git("add", ".");
    await point("gitdir: ../apart\n");
    expect(await refused("evil")).toContain("does not name");
  });

  it.skipIf(process.getuid?.() !== 0)("of another user [needs root]", async () => {
    git("worktree", "add", "-q", "../tree");
    chmodSync(folder, 0o755);
    chownSync(join(main, ".git"), 4321, 4321);
    expect(await refused("tree")).toContain("belongs to another user");
    chownSync(join(folder, "tree"), 4321, 4321);
    chownSync(join(folder, "tree/.git"), 4321, 4321);
    expect(await shown("tree")).toEqual(["repository ro main/.git"]);
  });
});

describe("a repository that may not be shown", () => {
  beforeEach(() => void git("worktree", "add", "-q", "../tree"));

  it.each([
    ["a password in a URL", '[remote "o"]\n url = https://me:pass@example.com/x\n', "remote.o.url"],
    [
      "a token in a URL",
      '[remote "o"]\n pushurl = https://abcdefghijklmnopqrstuvwxyz@example.com/x\n',
      "pushurl",
    ],
    [
      "a header",
      '[http "https://example.com/"]\n extraheader = AUTHORIZATION: basic eDp5\n',
      "http.….extraheader",
    ],
    [
      "a URL with a password as a name",
      '[url "https://a:b@example.com/"]\n insteadOf = x:\n',
      "url.….insteadof",
    ],
    ["a password", "[sendemail]\n smtpPass = x\n", "sendemail.smtppass"],
    ["a helper with the password in it", '[credential]\n helper = "!echo password=x"\n', "credential.helper"],
    ["an included file with a token", "[include]\n path = more\n", "my.token"],
  ])("has %s in its configuration", async (_, text, name) => {
    await writeFile(join(main, ".git/more"), "[my]\n token = x\n");
    await appendFile(join(main, ".git/config"), text);
    const notice = await refused("tree");
    expect(notice).toContain(name);
    expect(notice).not.toMatch(/pass@|abcdef|eDp5|a:b/);
  });

  it("has a secret in the configuration of a submodule or of another worktree", async () => {
    await mkdir(join(main, ".git/modules/a/b/objects"), { recursive: true });
    await writeFile(
      join(main, ".git/modules/a/b/config"),
      '[remote "o"]\n url = https://me:pass@example.com/\n',
    );
    expect(await refused("tree")).toContain("modules/a/b/config");
    await rm(join(main, ".git/modules"), { recursive: true });
    await writeFile(join(main, ".git/worktrees/tree/config.worktree"), "[x]\n password = y\n");
    expect(await refused("tree")).toContain("config.worktree");
  });

  it("shows what is no secret: names, hosts and helpers", async () => {
    await appendFile(
      join(main, ".git/config"),
      '[remote "o"]\n url = https://me@example.com/x\n[remote "p"]\n url = git@example.com:x\n[credential]\n helper = cache\n[user]\n signingKey = ABCD\n',
    );
    expect(await shown("tree")).toEqual(["repository ro main/.git"]);
  });

  it("is closed like any directory of the host, and not looked for in the home directory", async () => {
    const check = {
      endpoint: "unix:///var/run/docker.sock",
      dockerRootDir: join(main, ".git"),
      host: { homeDirectory: main },
    };
    expect((await plan("tree", { check })).notices).toEqual([
      expect.stringContaining("may not be the git directory"),
    ]);
    const elsewhere = { ...check, dockerRootDir: "/var/lib/docker" };
    expect(await plan("main/sub", { check: elsewhere })).toMatchObject({
      mounts: [],
      top: null,
      notices: [],
    });
  });

  it("borrows objects that the sandbox does not see, and says so in the workspace too", async () => {
    gitIn(folder, "clone", "-q", "--shared", "main", "borrower");
    expect((await plan("borrower")).notices).toEqual([
      expect.stringMatching(
        /"borrower\/.git" borrows some from "main\/.git\/objects"; copy them: git repack/,
      ),
    ]);
    const visible = [join(folder, "borrower"), main];
    expect((await plan("borrower", { visible })).notices).toEqual([]);
    expect(await readFile(join(folder, "borrower/.git/HEAD"), "utf8")).toContain("ref:");
  });
});
