import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { planProtection, type Root } from "../../../../src/sandbox/plan/protected-paths.js";

const NAMES = [".git", ".codex", ".agents", ".brig"];
const identity = { dev: "1", ino: "2" };
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-protected-")));
});
afterEach(async () => await rm(folder, { recursive: true }));

async function make(path: string, content?: string): Promise<string> {
  const full = join(folder, path);
  await mkdir(content === undefined ? full : dirname(full), { recursive: true });
  if (content !== undefined) await writeFile(full, content);
  return full;
}

function root(path: string, changes: Partial<Root> = {}): Root {
  return { kind: "workspace", access: "rw", directory: { path: join(folder, path), identity }, ...changes };
}

const extra = (path: string) => root(path, { kind: "writable-root" });

/** `kind access path` of each mount, paths relative to the test's folder. */
async function mountsOf(roots: Root[], names = NAMES): Promise<string[]> {
  const { mounts } = await planProtection(roots, names);
  return mounts.map(({ kind, access, path }) => `${kind} ${access} ${path.slice(folder.length + 1)}`);
}

async function refusal(roots: Root[], names = NAMES): Promise<string> {
  const error = await planProtection(roots, names).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BrigError);
  expect(error).toMatchObject({ code: "policy.not-enforced", hint: expect.stringMatching(/\w/) });
  return (error as BrigError).message;
}

describe("protected names of a writable workspace", () => {
  it("that exist are bound read-only, directories and files alike, after the workspace", async () => {
    await make("repo/.git/hooks");
    await make("repo/.codex", "a file");
    await make("repo/.agents");
    await make("repo/.brig");
    expect(await mountsOf([root("repo")])).toEqual([
      "workspace rw repo",
      "protected ro repo/.agents",
      "protected ro repo/.brig",
      "protected ro repo/.codex",
      "protected ro repo/.git",
    ]);
  });

  it("that are absent get a placeholder each, .git too, and nothing is made yet", async () => {
    await make("repo/.codex");
    const { mounts, placeholders } = await planProtection([root("repo")], NAMES);
    expect(placeholders).toEqual([".git", ".agents", ".brig"].map((name) => join(folder, "repo", name)));
    expect(mounts.filter(({ kind }) => kind === "protected")).toHaveLength(4);
    expect(await readdir(join(folder, "repo"))).toEqual([".codex"]);
  });

  it("keep the identity they had when they were looked at", async () => {
    await make("repo/.git");
    const { mounts } = await planProtection([root("repo")], [".git", ".codex"]);
    const found = Object.fromEntries(
      mounts.map(({ path, identity }) => [path.slice(folder.length + 1), identity]),
    );
    expect(found).toEqual({
      repo: identity,
      "repo/.git": { dev: expect.stringMatching(/^\d+$/), ino: expect.stringMatching(/^\d+$/) },
      "repo/.codex": null,
    });
  });

  it("have an identity for every pinned directory too, which is no link", async () => {
    await make("repo/a/store.git");
    await make("repo/.git", "gitdir: a/store.git\n");
    const { mounts } = await planProtection([root("repo")], [".git"]);
    expect(mounts.find(({ kind }) => kind === "pin")?.identity?.ino).toMatch(/^\d+$/);
  });

  it("are taken over from a session that was killed: an empty directory that nobody may write", async () => {
    const left = await make("repo/.codex");
    await chmod(left, 0o555);
    await make("repo/.git");
    const { placeholders } = await planProtection([root("repo")], [".git", ".codex"]);
    expect(placeholders).toEqual([left]);
  });

  it("are of no matter in a read-only workspace", async () => {
    await make("repo");
    expect(await mountsOf([root("repo", { access: "ro" })])).toEqual(["workspace ro repo"]);
  });

  it("are protected in every writable root", async () => {
    await make("repo");
    await make("other/.git");
    expect(await mountsOf([root("repo"), extra("other")], [".git"])).toEqual([
      "writable-root rw other",
      "workspace rw repo",
      "protected ro other/.git",
      "protected ro repo/.git",
    ]);
  });

  it("that are links are given up by name, and what they lead to in the workspace stays read-only", async () => {
    await make("repo/docs/agents");
    await symlink("docs/agents", join(folder, "repo/.agents"));
    await symlink("../elsewhere", join(folder, "repo/.codex"));
    const unprotected = [".agents", ".codex"].map((name) => join(folder, "repo", name));
    await expect(planProtection([root("repo")], NAMES)).rejects.toMatchObject({
      hint: expect.stringContaining(`--unprotected "${unprotected[1]}"`),
    });
    const { mounts, placeholders } = await planProtection([root("repo")], NAMES, { unprotected });
    const paths = mounts.map(({ kind, path }) => `${kind} ${path.slice(folder.length + 1)}`);
    expect(paths).toContain("protected repo/docs/agents");
    expect(paths.join()).not.toMatch(/repo\/\.(agents|codex)/);
    expect(placeholders).toEqual([".git", ".brig"].map((name) => join(folder, "repo", name)));
  });

  it("that are links are no matter in a copy, where nothing of the host can be replaced", async () => {
    await make("repo");
    await symlink("elsewhere", join(folder, "repo/.agents"));
    const { absentNames } = await planProtection([root("repo")], NAMES, { overlayVolume: "v" });
    expect(absentNames).toEqual([".git", ".codex", ".brig"].map((name) => join(folder, "repo", name)));
  });

  it("that are links cannot be protected, and the run is refused", async () => {
    await make("repo");
    await make("elsewhere");
    await symlink("../elsewhere", join(folder, "repo/.git"));
    expect(await refusal([root("repo")])).toContain("symbolic link");
    await rm(join(folder, "repo/.git"));
    await symlink("nowhere", join(folder, "repo/.codex"));
    expect(await refusal([root("repo")])).toContain("symbolic link");
  });

  it("that are neither file nor directory are refused without being opened", async () => {
    await make("repo");
    execFileSync("mkfifo", [join(folder, "repo/.git")]);
    expect(await refusal([root("repo")])).toContain("neither a file nor a directory");
  });
});

describe("a .git", () => {
  it("file of a worktree outside every writable root protects only itself", async () => {
    await make("main/.git/worktrees/w");
    await make("repo/.git", `gitdir: ${folder}/main/.git/worktrees/w\n`);
    expect(await mountsOf([root("repo")], [".git"])).toEqual(["workspace rw repo", "protected ro repo/.git"]);
  });

  it("protects the directory it names and that one's commondir inside a writable root", async () => {
    await make("main/.git/worktrees/w/commondir", "../..\n");
    await make("repo/.git", "gitdir: ../main/.git/worktrees/w\n");
    expect(await mountsOf([root("repo"), extra("main")], [".git"])).toEqual([
      "writable-root rw main",
      "workspace rw repo",
      "protected ro main/.git",
      "protected ro repo/.git",
    ]);
  });

  it("that names a directory deep inside has every directory on the way pinned", async () => {
    await make("repo/a/b/store.git/hooks");
    await make("repo/.git", "gitdir: a/b/store.git\n");
    expect(await mountsOf([root("repo")], [".git"])).toEqual([
      "workspace rw repo",
      "protected ro repo/.git",
      "pin rw repo/a",
      "pin rw repo/a/b",
      "protected ro repo/a/b/store.git",
    ]);
  });

  it("whose commondir leads elsewhere in a writable root protects that too", async () => {
    await make("repo/wt/commondir", "../shared/.git\n");
    await make("repo/shared/.git/hooks");
    await make("repo/.git", "gitdir: wt");
    expect(await mountsOf([root("repo")], [".git"])).toEqual([
      "workspace rw repo",
      "protected ro repo/.git",
      "pin rw repo/shared",
      "protected ro repo/wt",
      "protected ro repo/shared/.git",
    ]);
  });

  it("whose target leads through a link inside the workspace is refused", async () => {
    await make("repo/real/store.git");
    await symlink("real", join(folder, "repo/way"));
    await make("repo/.git", "gitdir: way/store.git\n");
    expect(await refusal([root("repo")], [".git"])).toContain("symbolic link");
  });

  it("whose target leads through a link outside back into the workspace protects where it really is", async () => {
    await make("repo/store.git");
    await symlink("repo", join(folder, "alias"));
    await make("repo/.git", `gitdir: ${folder}/alias/store.git\n`);
    expect(await mountsOf([root("repo")], [".git"])).toContain("protected ro repo/store.git");
  });

  it("whose target holds the whole workspace is refused: nothing of it could be written", async () => {
    await make("repo/.git", "gitdir: .\n");
    expect(await refusal([root("repo")], [".git"])).toContain("contains all of");
    await make("repo/.git", "gitdir: ..\n");
    expect(await refusal([root("repo")], [".git"])).toContain("contains all of");
    await symlink("repo", join(folder, "itself"));
    await make("repo/.git", "gitdir: ../itself\n");
    expect(await refusal([root("repo")], [".git"])).toContain("contains all of");
  });

  it("whose target does not exist but could be created is refused", async () => {
    await make("repo/.git", "gitdir: later/store.git\n");
    expect(await refusal([root("repo")], [".git"])).toContain("could be created");
  });

  it("is read as git reads it: line ends at the end are not part of the path, others are", async () => {
    await make("repo/store.git");
    await make("repo/odd\nname.git");
    await make("repo/.git", "gitdir: store.git\r\n\n");
    expect(await mountsOf([root("repo")], [".git"])).toContain("protected ro repo/store.git");
    await make("repo/.git", "gitdir: odd\nname.git\n");
    expect(await mountsOf([root("repo")], [".git"])).toContain("protected ro repo/odd\nname.git");
  });

  it("that is a directory with a commondir has that one protected as well", async () => {
    await make("repo/shared.git/hooks");
    await make("repo/.git/commondir", "../shared.git\n");
    expect(await mountsOf([root("repo")], [".git"])).toEqual([
      "workspace rw repo",
      "protected ro repo/.git",
      "protected ro repo/shared.git",
    ]);
  });

  it("without a gitdir line is protected as any file", async () => {
    await make("repo/.git", "something else");
    expect(await mountsOf([root("repo")], [".git"])).toEqual(["workspace rw repo", "protected ro repo/.git"]);
  });

  it("too large to be a pointer is refused unread", async () => {
    await make("repo/.git", `gitdir: ${"x".repeat(70_000)}`);
    expect(await refusal([root("repo")], [".git"])).toContain("not a small regular file");
  });
});

describe("writable roots inside one another", () => {
  it("are each protected, and what lies between is pinned", async () => {
    await make("repo/sub/deep/inner/.git");
    await make("repo/.git");
    expect(await mountsOf([root("repo"), extra("repo/sub/deep/inner")], [".git"])).toEqual([
      "workspace rw repo",
      "protected ro repo/.git",
      "pin rw repo/sub",
      "pin rw repo/sub/deep",
      "writable-root rw repo/sub/deep/inner",
      "protected ro repo/sub/deep/inner/.git",
    ]);
  });

  it("below a protected path are refused", async () => {
    await make("repo/.codex/data");
    expect(await refusal([root("repo"), extra("repo/.codex/data")])).toContain("lies inside it");
    expect(await refusal([root("repo"), extra("repo/.codex")])).toContain("lies inside it");
  });

  it("or a workspace, inside somebody's .git is refused", async () => {
    await make("main/.git/modules/sub");
    expect(await refusal([root("main/.git")])).toContain("inside a .git directory");
    expect(await refusal([root("main/.git/modules/sub")])).toContain("inside a .git directory");
    expect(await mountsOf([root("main/.git/modules/sub", { access: "ro" })])).toHaveLength(1);
  });

  it("come parents first in the list of mounts", async () => {
    await make("repo/a/b/c/.git");
    const { mounts } = await planProtection([extra("repo/a/b/c"), root("repo")], NAMES);
    const depths = mounts.map(({ path }) => path.split("/").length);
    expect(depths).toEqual(depths.toSorted((a, b) => a - b));
  });
});
