import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { workspaceBranch } from "../../../../src/agent/open/workspace-branch.js";
import { commitFile, createRepository, git } from "../../../support/git-repositories.js";

let folder = "";

beforeEach(async () => {
  const made = await mkdtemp(join(tmpdir(), "brig-branch-"));
  onTestFinished(() => rm(made, { recursive: true }));
  folder = made;
});

it("is that of the repository in or above the workspace, and of a further work tree", async () => {
  const repository = join(folder, "repository");
  await createRepository(repository);
  await commitFile(repository, "a", "a\n");
  git(repository, ["checkout", "-q", "-b", "feature/sea"]);
  await mkdir(join(repository, "deep/er"), { recursive: true });
  expect(await workspaceBranch(join(repository, "deep/er"))).toBe("feature/sea");
  git(repository, ["worktree", "add", "-q", "-b", "further", join(folder, "tree")]);
  expect(await workspaceBranch(join(folder, "tree"))).toBe("further");
  git(repository, ["checkout", "-q", "--detach"]);
  expect(await workspaceBranch(repository)).toBeNull();
});

it("is not known without a repository, and of nothing that only looks like one", async () => {
  expect(await workspaceBranch(folder)).toBeNull();
  await mkdir(join(folder, ".git"));
  execFileSync("mkfifo", [join(folder, ".git/HEAD")]);
  expect(await workspaceBranch(folder)).toBeNull();
  await rm(join(folder, ".git/HEAD"));
  await writeFile(join(folder, "secret"), "ref: refs/heads/secret\n");
  await symlink(join(folder, "secret"), join(folder, ".git/HEAD"));
  expect(await workspaceBranch(folder)).toBeNull();
  await rm(join(folder, ".git/HEAD"));
  await writeFile(join(folder, ".git/HEAD"), "ref: refs/heads/a\x1b[31mb\n");
  expect(await workspaceBranch(folder)).toBeNull();
});
