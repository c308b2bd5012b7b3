import { execFileSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { attempt } from "../../support/attempts.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { createRepository, git } from "../../support/git-repositories.js";
import { giveToHostUser } from "../../support/host-users.js";

const SHOW =
  "git log --format=%s && git status --porcelain && git diff --stat && git rev-parse --show-toplevel";

/** A repository with a linked worktree, a submodule and a second git directory, and a file beside it. */
async function makeRepositories(directory: string): Promise<string> {
  const main = await createRepository(join(directory, "main"));
  await mkdir(join(main, "sub/deep"), { recursive: true });
  await writeFile(join(main, "sub/deep/file"), "x\n");
  await createRepository(join(directory, "library"));
  git(main, ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "module"]);
  git(main, ["add", "."]);
  git(main, ["commit", "-q", "-m", "second"]);
  git(main, ["worktree", "add", "-q", "../tree", "-b", "side"]);
  git(join(directory, "library"), ["init", "-q", "--separate-git-dir", join(directory, "apart")]);
  await writeFile(join(directory, "secret"), "not to be seen\n");
  await giveToHostUser(directory);
  // Another owner is a change, which git has to see.
  git(join(directory, "library"), ["rm", "-q", "--cached", "-r", "."]);
  git(join(directory, "library"), ["add", "."]);
  return main;
}

describe("git in a workspace whose repository lies outside", () => {
  forEachHostUser((userTest) => {
    userTest(
      "works in a linked worktree, a submodule and with a separate directory, and changes nothing",
      async ({ open, directory }) => {
        const main = await makeRepositories(directory);
        for (const [path, gitDirectory] of [
          [join(directory, "tree"), join(main, ".git")],
          [join(main, "module"), join(main, ".git/modules/module")],
          [join(directory, "library"), join(directory, "apart")],
        ] as const)
          for (const mode of ["read-only", "workspace-write"] as const) {
            const sandbox = await open({ workspace: path, mode });
            const { output, exitCode } = await sandbox.exec(["sh", "-c", `${SHOW}; cat ${directory}/secret`]);
            expect({ path, mode, exitCode, output }).toMatchObject({
              exitCode: 1,
              output: expect.stringMatching(
                new RegExp(`write first.txt\\n${path}\\n.*secret: No such file`, "s"),
              ),
            });
            expect(
              await attempt(sandbox, [
                ["create", join(gitDirectory, "hooks/pre-commit")],
                ["rename", join(gitDirectory, "config"), join(gitDirectory, "config2")],
                ["rename", gitDirectory, `${gitDirectory}-away`],
              ]),
            ).toEqual(["EROFS", "EROFS", "EROFS"]);
            await sandbox.close();
          }
      },
    );

    userTest(
      "works in a directory of a repository, which can be written to only there",
      async ({ open, directory }) => {
        const main = await makeRepositories(directory);
        const warnings: string[] = [];
        const workspace = join(main, "sub/deep");
        const sandbox = await open({ workspace, onWarning: ({ message }) => void warnings.push(message) });
        const { output, stderr } = await sandbox.exec([
          ...[
            "sh",
            "-c",
            "git log --format=%s -- . && echo y >>file && git diff --stat -- . && git rev-parse --show-prefix",
          ],
        ]);
        expect({ output, stderr }).toMatchObject({
          output: expect.stringMatching(/^second\n sub\/deep\/file \| 1 \+\n.*\nsub\/deep\/\n$/s),
        });
        expect(warnings).toEqual([expect.stringContaining("it takes the other files for deleted")]);
        expect(
          await attempt(sandbox, [
            ["create", join(main, ".git/hooks/pre-commit")],
            ["create", join(main, "sub/new")],
            ["create", join(main, "new")],
          ]),
        ).toEqual(["EROFS", "EROFS", "EROFS"]);
        await expect(sandbox.files.read(join(main, "first.txt"))).rejects.toMatchObject({
          code: "file.not-found",
        });
      },
    );

    userTest("shows nothing that a stranger's .git names, and says so", async ({ open, directory }) => {
      const main = await makeRepositories(directory);
      const warnings: string[] = [];
      const workspace = join(directory, "evil");
      await mkdir(workspace);
      await writeFile(join(workspace, ".git"), `gitdir: ${main}/.git\n`);
      await giveToHostUser(directory);
      const sandbox = await open({ workspace, onWarning: ({ message }) => void warnings.push(message) });
      expect(warnings).toEqual([
        expect.stringMatching(/^git does not work in the sandbox: .* does not name/),
      ]);
      await expect(sandbox.files.list(join(main, ".git"))).rejects.toMatchObject({ code: "file.not-found" });
    });

    userTest(
      "is not broken by an absent file that its configuration includes",
      async ({ open, directory }) => {
        const workspace = await createRepository(join(directory, "repo"));
        git(workspace, ["config", "include.path", "../local.config"]);
        await giveToHostUser(directory);
        for (const workspaceKind of ["bind", "overlay"] as const) {
          const sandbox = await open({ workspace, workspaceKind });
          expect(await sandbox.exec(["git", "log", "--format=%s"])).toMatchObject({
            output: "write first.txt\n",
          });
          const file = join(workspace, "local.config");
          const isBind = workspaceKind === "bind";
          const outcomes = await attempt(sandbox, [
            [isBind ? "append" : "create", file],
            ["rename", file, `${file}-away`],
          ]);
          expect(outcomes).toEqual(isBind ? ["EACCES", "EBUSY"] : ["ok", "ok"]);
          // On the host as well.
          expect(git(workspace, ["log", "--format=%s"])).toBe("write first.txt");
          await sandbox.close();
          expect(execFileSync("ls", ["-A", workspace], { encoding: "utf8" })).toBe(".git\nfirst.txt\n");
        }
        await rm(workspace, { recursive: true });
      },
    );
  });
});
