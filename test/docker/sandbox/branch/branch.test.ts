import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { Receipt } from "../../../../src/sandbox/receipt/receipt.js";
import { contentOf, createRepository, git, plantProgram } from "../../../support/git-repositories.js";
import { becomeHostUser, giveToHostUser, OWNING_USERS } from "../../../support/host-users.js";
import type { BreakableSandbox, TestSandboxOptions } from "../../../support/open-sandbox.js";
import { newSandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

const it = newSandboxTest();

const IDENTITY = "git config user.name Agent; git config user.email agent@example.com; ";

type Open = (options: TestSandboxOptions) => Promise<BreakableSandbox>;

/** Runs a script in a sandbox with the repository as its workspace, and closes it. */
async function session(
  open: Open,
  workspace: string,
  { script, ...options }: { script: string } & TestSandboxOptions,
): Promise<{ output: string; id: string } & Pick<Receipt, "branch">> {
  await giveToHostUser(workspace);
  const sandbox = await open({ workspace, git: "branch", ...options });
  const { output } = await sandbox.exec(["sh", "-c", script]);
  const { branch } = await sandbox.close();
  return { output, id: sandbox.id, branch };
}

describe.each(OWNING_USERS)("as the user $uid", (user) => {
  it.for(["bind", "overlay"] as const)(
    "brings commits from a %s workspace as one branch",
    async (kind, { open }) => {
      becomeHostUser(user);
      await using directory = await temporaryDirectory();
      const repository = await createRepository(directory.path);
      const before = await contentOf(join(repository, ".git"));
      const { branch, output, id } = await session(open, repository, {
        workspaceKind: kind,
        script: `set -e; ${IDENTITY} echo new > new.txt; git add .; git commit -q -m one; git checkout -q --detach; git commit -q --allow-empty -m two; git tag v1; git log --format=%s`,
      });
      expect(output).toBe("two\none\nwrite first.txt\n");
      expect(branch).toMatchObject({ kind: "arrived", branch: `brig/${id}`, commits: 2, notTaken: [] });
      expect(git(repository, ["log", "--format=%s %an", `brig/${id}`])).toBe(
        "two Agent\none Agent\nwrite first.txt A",
      );
      const after = await contentOf(join(repository, ".git"));
      for (const [path, content] of before) expect(after.get(path)).toBe(content);
      expect(after.size - before.size).toBe(3);
      expect(existsSync(join(repository, "new.txt"))).toBe(kind === "bind");
    },
  );
});

it("takes commits where the repository has them signed, and tells of that and of a lock that is left over", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  git(repository, ["config", "commit.gpgSign", "true"]);
  writeFileSync(join(repository, ".git/index.lock"), "");
  const warnings: string[] = [];
  const { branch, output } = await session(open, repository, {
    onWarning: ({ message }) => void warnings.push(message),
    script: `${IDENTITY} rm .git/index.lock; git commit -q --allow-empty -m one 2>&1`,
  });
  expect({ branch, output }).toMatchObject({ branch: { kind: "arrived", commits: 1 }, output: "" });
  expect(warnings).toEqual([
    expect.stringContaining("not signed"),
    expect.stringMatching(/index\.lock" is left over/),
  ]);
});

it("leaves the repository out of what is shown, applied and kept, since its commits arrive as a branch", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  await giveToHostUser(repository);
  const sandbox = await open({ workspace: repository, workspaceKind: "overlay", git: "branch" });
  const commit = (name: string) =>
    sandbox.exec(["sh", "-c", `${IDENTITY} echo ${name} > ${name}; git add .; git commit -q -m ${name}`]);
  await commit("one");
  const point = await sandbox.restorePoint();
  expect(point).toMatchObject({
    count: 2,
    changes: [
      { path: ".git", change: "modified" },
      { path: "one", change: "added" },
    ],
  });
  expect((await sandbox.diff()).changes.map(({ path }) => path)).toEqual(["one"]);
  await using fork = await sandbox.fork();
  await fork.exec(["sh", "-c", "git status; git commit -q --allow-empty -m fork; echo two > two"]);
  await commit("three");
  expect((await fork.changesSinceFork()).files).toEqual([{ path: "two", kind: "add" }]);
  expect(await fork.applyTo(sandbox)).toMatchObject({ kind: "applied", files: [{ path: "two" }] });
  expect(await sandbox.apply()).toEqual({ applied: ["one", "three", "two"], conflicts: [], skipped: [] });
  const { branch } = await sandbox.close();
  expect(branch).toMatchObject({ kind: "arrived", commits: 2 });
});

it("says that nothing arrived, and which branches were not taken", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  const script = `${IDENTITY} git checkout -q -b side; git commit -q --allow-empty -m side; git checkout -q main`;
  const { branch } = await session(open, repository, { script });
  expect(branch).toEqual({ kind: "nothing-new", notTaken: ["side"] });
  expect(git(repository, ["for-each-ref", "--format=%(refname)"])).toBe("refs/heads/main");
  const idle = await session(open, repository, { script: "true" });
  expect(idle.branch).toEqual({ kind: "nothing-new", notTaken: [] });
});

it.for([
  ["arrived", "true"],
  [
    "failed",
    "git update-ref refs/replace/$(git rev-parse HEAD^{tree}) $(echo | git hash-object -w --stdin); git config include.path ../evil",
  ],
] as const)(
  "keeps config, hooks and refs of a hostile session whose commits %s away from the host",
  async ([kind, last], { open }) => {
    await using directory = await temporaryDirectory();
    await using elsewhere = await temporaryDirectory();
    const repository = await createRepository(directory.path);
    const canary = join(elsewhere.path, "canary");
    const evil = await plantProgram(join(directory.path, "evil"), canary);
    const before = await contentOf(join(repository, ".git"));
    const script = `
    ${IDENTITY} git commit -q --allow-empty -m one
    for hook in reference-transaction update post-update pre-receive pre-auto-gc post-index-change; do cp evil .git/hooks/$hook; done
    for name in core.fsmonitor core.sshCommand core.pager core.alternateRefsCommand uploadpack.packObjectsHook; do git config $name '${evil}'; done
    git config core.hooksPath '${directory.path}'
    echo /tmp/elsewhere > .git/objects/info/alternates
    mkdir -p .git/refs/replace .git/modules/x/hooks && cp evil .git/modules/x/hooks/update
    git update-ref refs/heads/main HEAD; git update-ref refs/heads/stolen HEAD
    ${last}; chmod -R 777 .git`;
    const { branch, id } = await session(open, repository, { script });
    const after = await contentOf(join(repository, ".git"));
    for (const [path, content] of before) expect(after.get(path)).toBe(content);
    const added = [...after.keys()].filter((path) => !before.has(path));
    const allowed =
      /\/objects\/pack\/pack-[0-9a-f]{40}\.(?:pack|idx|rev)$|\/refs\/heads\/brig\/[0-9a-f-]{36}$/;
    expect(added.filter((path) => !allowed.test(path))).toEqual([]);
    expect(existsSync(canary)).toBe(false);
    git(repository, ["fsck", "--strict"]);
    expect(branch?.kind).toBe(kind);
    expect(git(repository, ["for-each-ref", "--format=%(refname)"]).split("\n")).toEqual(
      kind === "arrived" ? [`refs/heads/brig/${id}`, "refs/heads/main"] : ["refs/heads/main"],
    );
  },
);

it("refuses what a false git in the sandbox sends", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  const before = await contentOf(join(repository, ".git"));
  const script = `${IDENTITY}
    tree=$(printf '100644 ../../.git/hooks/update\\0aaaaaaaaaaaaaaaaaaaa' | git hash-object -t tree -w --literally --stdin)
    commit=$(git commit-tree -m forged $tree 2>&1) || commit=$(printf 'tree %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nx\\n' $tree | git hash-object -t commit -w --literally --stdin)
    git update-ref refs/heads/main $commit; git rev-parse HEAD`;
  const { branch } = await session(open, repository, { script });
  expect(branch?.kind).toBe("failed");
  expect(await contentOf(join(repository, ".git"))).toEqual(before);
});

it("refuses a workspace without a repository, and one whose repository lies elsewhere, before anything starts", async ({
  open,
}) => {
  await using directory = await temporaryDirectory();
  const refusal = { code: "branch.refused" };
  await expect(open({ workspace: directory.path, git: "branch" })).rejects.toMatchObject(refusal);
  writeFileSync(join(directory.path, ".git"), "gitdir: /elsewhere\n");
  await expect(open({ workspace: directory.path, git: "branch" })).rejects.toMatchObject(refusal);
  await expect(open({ workspaceKind: "none", git: "branch" })).rejects.toMatchObject({
    code: "usage.invalid",
  });
});

it("keeps submodules and other repositories in the workspace read-only", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  mkdirSync(join(repository, "inner"));
  await createRepository(join(repository, "inner"));
  const config = join(repository, "inner/.git/config");
  const before = readFileSync(config, "utf8");
  const { output } = await session(open, repository, { script: "git -C inner config user.name x; echo $?" });
  expect(output).not.toMatch(/^0$/m);
  expect(readFileSync(config, "utf8")).toBe(before);
});

it("leaves no volume and no container", async ({ open }) => {
  await using directory = await temporaryDirectory();
  const repository = await createRepository(directory.path);
  const sandbox = await open({ workspace: repository, git: "branch" });
  await sandbox.exec(["git", "status"]);
  const label = `brig.workspace=${repository}/.git`;
  expect(await sandbox.engine.listVolumes([label])).toHaveLength(3);
  await sandbox.close();
  expect(await sandbox.engine.listVolumes([label])).toEqual([]);
});
