import type { Sandbox } from "../../../sandbox/index.js";

/** Settings of the repository that would run a program are not obeyed. */
const PRELUDE = `
git() { command git -c safe.directory='*' -c core.fsmonitor= -c core.hooksPath=/dev/null -c gc.auto=0 "$@"; }
`;

/**
 * Commits that are not ancestors of the one checked out, wherever they are stored: the commits of all objects without
 * those that lead to HEAD. In the working directory, and in the directories directly in it.
 */
const COUNT = `${PRELUDE}
total=0
for directory in "$0" "$0"/*/; do
  [ -e "$directory/.git" ] && cd "$directory" || continue
  own=$(git rev-list --count HEAD 2> /dev/null) || own=0
  all=$(git cat-file --batch-all-objects --unordered --batch-check='%(objecttype)' 2> /dev/null | grep -c '^commit')
  total=$((total + all - own))
done
echo "$total"`;

const COUNT_LIMIT_MS = 60_000;
const REMOVE_LIMIT_MS = 900_000;

/**
 * Number of commits that an agent would find in the repository of its working directory and that do not lead to the one
 * checked out. 0 if there is no repository, no git, or too much to count.
 */
export async function countOtherCommits(
  sandbox: Pick<Sandbox, "exec">,
  { cwd, signal }: { cwd: string; signal?: AbortSignal | undefined },
): Promise<number> {
  const { exitCode, stdout } = await sandbox.exec(["/bin/sh", "-c", COUNT, cwd], {
    cwd: "/",
    timeoutMs: COUNT_LIMIT_MS,
    maxOutputBytes: 4096,
    signal,
  });
  const count = /^[0-9]{1,9}$/.exec(stdout.trim())?.[0];
  return exitCode === 0 && count !== undefined ? Number(count) : 0;
}

/** Objects are only packed anew if some are left over, because that takes long in a large repository. */
const REMOVE = `${PRELUDE}
set -e
cd "$0"
git rev-parse -q --verify 'HEAD^{commit}' > /dev/null
store=$(git rev-parse --git-common-dir)
store=$(cd "$store" && pwd)
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
for remote in $(git remote); do git remote remove "$remote" 2> /dev/null || true; done
git for-each-ref --format='%(refname)' | LC_ALL=C sort > "$lists/all"
git for-each-ref --merged=HEAD --format='%(refname)' | LC_ALL=C sort > "$lists/before"
LC_ALL=C comm -23 "$lists/all" "$lists/before" | sed 's/.*/option no-deref\\ndelete &/' | git update-ref --stdin
rm -rf "$store/logs" "$store/worktrees" "$store/lost-found" "$store/rebase-merge" "$store/rebase-apply" "$store/sequencer"
rm -f "$store"/*_HEAD "$store/AUTO_MERGE" "$store"/BISECT_* "$store"/objects/info/commit-graph "$store"/objects/pack/*.keep
rm -rf "$store/objects/info/commit-graphs"
reachable=$(git rev-list --objects --all --indexed-objects HEAD | wc -l)
stored=$(git cat-file --batch-all-objects --unordered --batch-check='%(objectname)' | wc -l)
if [ "$reachable" != "$stored" ] || [ -e "$store/objects/info/alternates" ]; then
  git repack -q -a -d
  rm -f "$store/objects/info/alternates"
  git prune --expire=now
fi`;

/**
 * Removes from a repository whatever does not lead to the commit that it has checked out: branches, tags, remotes,
 * the stash, the reflog, and all objects that nothing leads to. False if that did not succeed.
 */
export async function removeOtherCommits(
  sandbox: Pick<Sandbox, "exec">,
  { repository, signal }: { repository: string; signal?: AbortSignal | undefined },
): Promise<boolean> {
  const { exitCode } = await sandbox.exec(["/bin/sh", "-c", REMOVE, repository], {
    cwd: "/",
    timeoutMs: REMOVE_LIMIT_MS,
    maxOutputBytes: 4096,
    signal,
  });
  return exitCode === 0;
}
