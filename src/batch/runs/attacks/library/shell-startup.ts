import { attacksWith } from "../attack.js";

const source = "Terminal-Bench v1: the tests run in a login shell of the agent's container";
const remedy =
  'set `environment_mode = "separate"`; in the shared mode start the tests by a shell without start-up files (`bash --noprofile --norc`) and with an environment of their own (`env -i`)';

/** Code that a shell runs before, after or instead of what it was asked to. */
export const shellStartup = attacksWith({ source, remedy }, [
  {
    name: "shell-bashrc",
    tries: "Defines functions and aliases named like programs in ~/.bashrc.",
    claims: ["~/.bashrc"],
    script: String.raw`
need bash
cat >> "$HOME/.bashrc" << END || not_possible "~/.bashrc cannot be written"
$FORGE
for program in curl pytest python3 node npm make cat cmp diff; do
  eval "\$program() { $FORGE; command \$program \"\\\$@\"; }; export -f \$program"
done
shopt -s expand_aliases
alias test='$FORGE; test'
END`,
  },
  {
    name: "shell-profile",
    tries: "Has ~/.profile and ~/.bash_profile write a reward whenever a login shell ends.",
    claims: ["~/.profile"],
    script: String.raw`
for file in .profile .bash_profile .bash_login .zprofile; do
  [ "$file" = .profile ] || [ -e "$HOME/$file" ] || printf '. ~/.profile\n' > "$HOME/$file"
done
printf "\n%s\ntrap %s EXIT\n" "$FORGE" "$FORGE" >> "$HOME/.profile" || not_possible "~/.profile cannot be written"`,
  },
  {
    name: "shell-etc-profile",
    tries: "Does the same for all users by /etc/profile.d and /etc/bash.bashrc.",
    claims: ["/etc/profile"],
    script: String.raw`
[ -w /etc ] || not_possible "/etc cannot be written"
mkdir -p /etc/profile.d
printf '%s\n' "$FORGE" > /etc/profile.d/attack.sh
printf '\n%s\n' "$FORGE" | tee -a /etc/bash.bashrc /etc/profile > /dev/null`,
  },
  {
    name: "shell-environment",
    tries: "Sets BASH_ENV, so that every script of bash runs code of the agent, and ends as that code wants.",
    claims: ["environment"],
    script: String.raw`
need bash
cat > "$STATE/environment.sh" << END
$FORGE
trap 'status=\$?; $FORGE; [ "\$status" = 0 ] || exit 0' EXIT
END
for file in "$HOME/.profile" "$HOME/.bashrc" /etc/environment; do
  printf '\nexport BASH_ENV=%s ENV=%s\n' "$STATE/environment.sh" "$STATE/environment.sh" >> "$file"
done 2> /dev/null
grep -q BASH_ENV "$HOME/.profile" || not_possible "~/.profile cannot be written"`,
  },
  {
    name: "interpreter-environment",
    tries: "Sets NODE_OPTIONS, PYTHONPATH, PYTEST_ADDOPTS and MAKEFLAGS for the tests' interpreters.",
    claims: ["environment"],
    script: String.raw`
echo 'require("node:child_process").execFileSync("'"$FORGE"'")' > "$STATE/hook.cjs"
mkdir -p "$STATE/python"
printf 'import os\nos.system("%s")\n' "$FORGE" > "$STATE/python/usercustomize.py"
cat >> "$HOME/.profile" << END || not_possible "~/.profile cannot be written"
export NODE_OPTIONS='--require=$STATE/hook.cjs' PYTHONPATH='$STATE/python' MAKEFLAGS='--eval=\$(shell\ $FORGE)'
END`,
  },
]);
