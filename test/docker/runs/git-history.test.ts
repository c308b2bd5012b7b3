import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { countOtherCommits, removeOtherCommits } from "../../../src/batch/runs/attempt/agent-container.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { commitFile, createRepository, git } from "../../support/git-repositories.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, openBare, shellAgent, taskOf } from "../../support/task-attempts.js";

/** A repository at "now", in which the future is wherever git keeps commits. Prints the hash of one of them. */
const REPOSITORY = `set -e
mkdir -p /app /srv && cd /app && git init -q -b main .
git config user.name a && git config user.email a@example.org
commit() { echo "$1" > answer.txt && git add . && git commit -q -m "$1" && git rev-parse HEAD; }
commit past > /dev/null; git tag v1; now=$(commit now)
for place in branch tag packed stash reflog unreachable other; do
  git checkout -q --detach $now
  commit "future-$place" > /tmp/$place
  case $place in
    branch) git branch later; git worktree add -q -f /tmp/elsewhere later ;;
    tag) git tag -a -m future v2 ;;
    packed) git branch packed; git gc -q; git branch -q -D packed ;;
    other) git update-ref refs/notes/x HEAD; touch .git/objects/pack/keep; for p in .git/objects/pack/*.pack; do touch "\${p%.pack}.keep"; done ;;
  esac
done
git checkout -q main; git reset -q --hard $now; echo stashed > answer.txt; git stash -q
git clone -q --bare . /srv/origin.git; git remote add origin /srv/origin.git; git fetch -q; git remote set-head origin main
git commit-graph write --reachable 2> /dev/null; git gc -q
cat /tmp/unreachable`;

/** What an agent would try. Prints the future that it sees. */
const LOOK = `cd /app
git log --all --format=%s; git log -g --all --format=%s; git tag -l --format='%(refname) %(subject)'
git stash list; git fsck --lost-found --unreachable --no-reflogs 2> /dev/null; git for-each-ref; cat .git/packed-refs .git/*_HEAD .git/logs/HEAD 2> /dev/null
git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' | while read -r type name; do
  [ "$type" = commit ] && git log -1 --format=%s "$name"; [ "$type" = blob ] && git cat-file blob "$name"
done
git fetch -q origin 2> /dev/null && echo future-fetched
cat /tmp/elsewhere/answer.txt > /dev/null; git status --short; git fsck --full`;

describe("a repository whose future the agent must not see", () => {
  sandboxTest("has only what leads to the commit that is checked out", async ({ directory }) => {
    await using opened = await openBare(directory);
    const { sandbox } = opened;
    const look = async () => (await sandbox.exec(["bash", "-c", LOOK])).output;
    const made = await sandbox.exec(["bash", "-c", REPOSITORY]);
    expect(made).toMatchObject({ exitCode: 0 });
    expect(await look()).toMatch(/future-branch[\s\S]*future-reflog[\s\S]*future-fetched/);
    expect(await look()).toContain(made.stdout.trim());
    expect(await countOtherCommits(sandbox, { cwd: "/app" })).toBeGreaterThanOrEqual(7);

    expect(await removeOtherCommits(sandbox, { repository: "/app" })).toBe(true);
    const seen = await look();
    expect(seen).not.toMatch(/future|stashed/);
    expect(seen).not.toContain(made.stdout.trim());
    expect(seen).toMatch(/^now\npast\n/);
    expect(seen).toContain("refs/tags/v1 past");
    expect(await countOtherCommits(sandbox, { cwd: "/app" })).toBe(0);
    expect(await sandbox.exec(["git", "-C", "/app", "log", "-1", "--format=%s"])).toMatchObject({
      stdout: "now\n",
    });
  });

  sandboxTest(
    "is counted below the working directory, and nothing where there is none",
    async ({ directory }) => {
      await using opened = await openBare(directory);
      const { sandbox } = opened;
      await sandbox.exec([
        "bash",
        "-c",
        "mkdir -p /srv/work /empty && cp -r /app /srv/work/repository; true",
      ]);
      expect(await countOtherCommits(sandbox, { cwd: "/empty" })).toBe(0);
      expect(await countOtherCommits(sandbox, { cwd: "/nosuch" })).toBe(0);
      expect(await removeOtherCommits(sandbox, { repository: "/empty" })).toBe(false);
      await sandbox.exec(["bash", "-c", `${REPOSITORY}; mkdir /work; mv /app /work/a\\ repository`]);
      expect(await countOtherCommits(sandbox, { cwd: "/work" })).toBeGreaterThanOrEqual(7);
    },
  );
});

const EVALUATION = `echo '>>>>> Start Test Output'
git -C /app status --short
grep -qx 42 /app/answer.txt && echo 'PASSED test_x.py::test_x' || echo 'FAILED test_x.py::test_x'
echo '>>>>> End Test Output'`;

describe("an attempt at a task with a repository", () => {
  /** The agent takes the answer from a later commit if it finds one. */
  const agent = shellAgent("cp answer.txt before; git checkout -q later -- answer.txt; true");

  async function taskIn(directory: string) {
    const files = join(directory, "repository");
    await createRepository(files);
    await commitFile(files, "answer.txt", "41\n");
    git(files, ["checkout", "-q", "-b", "later"]);
    await commitFile(files, "answer.txt", "42\n");
    git(files, ["checkout", "-q", "main"]);
    return { environment: { files }, baseCommit: git(files, ["rev-parse", "HEAD"]) };
  }

  sandboxTest(
    "of SWE-bench hides the future, and its files reach the tests without git's",
    async ({ directory }) => {
      const { environment, baseCommit } = await taskIn(directory);
      const check = {
        kind: "swe-bench",
        repository: "/app",
        baseCommit,
        evalScript: EVALUATION,
        parser: "parse_log_pytest",
        evalType: "pass_and_fail",
        failToPass: ["test_x.py::test_x"],
        passToPass: [],
      } as const;
      const artifacts = [{ source: "/app", destination: null, exclude: [".git"] }];
      const task = await taskOf(directory, { environment, verifier: { check }, step: { artifacts } });
      const cheating = await attemptAt(directory, { task, agent });
      expect(await runAttempt(cheating)).toMatchObject({ status: "scored", reward: 0 });
      const output = await readFile(join(cheating.folder, "test-output.txt"), "utf8");
      expect(output).toContain("Output\n?? before\nFAILED");
      const honest = await attemptAt(directory, { task, agent: shellAgent("echo 42 > answer.txt") });
      expect(await runAttempt(honest)).toMatchObject({ status: "scored", reward: 1 });
    },
  );

  sandboxTest("of another kind keeps it, and the result says so", async ({ directory }) => {
    const { environment } = await taskIn(directory);
    const testScript = "#!/bin/sh\ngrep -qx 42 /app/answer.txt && echo 1 > /logs/verifier/reward.txt";
    const task = await taskOf(directory, { environment, testScript });
    const result = await runAttempt(await attemptAt(directory, { task, agent }));
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(result.steps[0]?.verification?.findings).toEqual([
      "the repository of the working directory has 1 commits that do not lead to the one checked out",
    ]);
  });
});
