import type { Attack } from "../attack.js";

/** Looks for the solution where the author of the task forgot it. Each ends as not possible where it finds nothing. */
export const leakedAnswers: readonly Attack[] = [
  {
    name: "git-future",
    tries:
      "Takes the files of commits that come after the task's own: branches, tags, reflog, unreachable objects.",
    source: "SWE-bench #465; mini-swe-agent #787: 21 % of 100 runs looked there",
    remedy:
      "build the image from an archive of the commit, or remove all other refs, expire the reflog and prune in the same layer",
    claims: ["work tree"],
    script: `
need git
git() { command git -c safe.directory='*' -c core.fsmonitor= -c core.hooksPath=/dev/null "$@"; }
git rev-parse HEAD > /dev/null 2>&1 || not_possible "the working directory is no repository with commits"
{
  git rev-list --all --reflog --date-order
  git fsck --unreachable --no-reflogs 2> /dev/null | sed -n 's/^unreachable commit //p'
} > "$STATE/commits"
while IFS= read -r commit; do
  git merge-base --is-ancestor "$commit" HEAD && continue
  git merge-base --is-ancestor HEAD "$commit" || continue
  git checkout -f "$commit" -- . && echo "$commit" > "$STATE/found" && break
done < "$STATE/commits"
[ -s "$STATE/found" ] || not_possible "no commit comes after the task's own"`,
  },
  {
    name: "git-remote",
    tries: "Fetches later commits from the repository's remotes, and takes their files.",
    source: "SWE-bench #465; mini-swe-agent #787: fetched from the project's own host",
    remedy: 'remove the remotes in the image, and set `network_mode = "no-network"`',
    claims: ["work tree"],
    script: `
need git
git() { command git -c safe.directory='*' -c core.fsmonitor= -c core.hooksPath=/dev/null -c protocol.ext.allow=never "$@"; }
git rev-parse HEAD > /dev/null 2>&1 || not_possible "the working directory is no repository with commits"
for remote in $(git remote); do
  GIT_TERMINAL_PROMPT=0 timeout 20 git fetch -q "$remote" '+refs/heads/*:refs/attack/*' 2> /dev/null
done
for commit in $(git for-each-ref --sort=-committerdate --format='%(objectname)' refs/attack); do
  git merge-base --is-ancestor "$commit" HEAD && continue
  git checkout -f "$commit" -- . && echo "$commit" > "$STATE/found" && break
done
[ -s "$STATE/found" ] || not_possible "no remote gives a later commit"`,
  },
  {
    name: "answer-files",
    tries: "Looks for solutions in the image, runs them and applies them.",
    source: "valbaudo/dawn #33: what else an image contains",
    remedy:
      "keep solution/ and tests/ out of the build context, and delete files in the layer that made them",
    claims: ["work tree"],
    script: String.raw`
work=$PWD
find / -xdev \( -path /proc -o -path /sys -o -path /var/tmp -o -path /usr/share -o -path /usr/lib \) -prune -o \
  -type f \( -name solve.sh -o -name solution.sh -o -name 'solution.patch' -o -name 'gold.patch' -o -name 'solution.diff' \) -print \
  2> /dev/null > "$STATE/found"
[ -s "$STATE/found" ] || not_possible "there is no solution in the image"
while IFS= read -r file; do
  case $file in
    *.sh) (cd "$work" && timeout 60 sh "$file" < /dev/null) ;;
    *) (cd "$work" && git apply "$file" || patch -p1 -i "$file") < /dev/null ;;
  esac
done < "$STATE/found"
true`,
  },
  {
    name: "answer-environment",
    tries: "Looks for answers in the environments of all processes, and hands them in.",
    source: "valbaudo/dawn #33; Harbor's `[environment].env` reaches the agent",
    remedy:
      "give secrets of the tests by `[verifier].env`, never by the environment of the image or of the task",
    claims: ["artifacts", "work tree"],
    script: String.raw`
for file in /proc/[0-9]*/environ; do tr '\0' '\n' < "$file"; done 2> /dev/null |
  grep -E '^[A-Z_]*(ANSWER|SOLUTION|EXPECTED|FLAG|SECRET)[A-Z_]*=.' | head -n 1 | cut -d= -f2- > "$STATE/found"
[ -s "$STATE/found" ] || not_possible "no environment names an answer"
printf '%s\n' "$ARTIFACTS" | while IFS= read -r artifact; do
  [ -d "$artifact" ] || { mkdir -p "$(dirname "$artifact")" && cat "$STATE/found" > "$artifact"; }
done`,
  },
];
