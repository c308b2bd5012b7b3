import { describe, expect, it } from "vitest";
import { riskOf } from "../../../../src/policy/command-safety/command-risk.js";
import { isKnownSafe } from "../../../../src/policy/command-safety/safe-commands.js";

const looking =
  "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc which whoami";

describe("a program that only looks", () => {
  it.each(looking.split(" "))("%s is safe with whatever arguments", (name) => {
    expect(isKnownSafe([name])).toBe(true);
    expect(isKnownSafe([name, "-a", "--", "x y", "*"])).toBe(true);
    expect(isKnownSafe(["bash", "-lc", `${name} -a 'x y' *.ts`])).toBe(true);
  });

  it.each(["/bin/cat", "/usr/bin/cat", "/usr/local/bin/cat"])("%s is the system's", (path) => {
    expect(isKnownSafe([path, "x"])).toBe(true);
  });

  it.each(["./cat", "/work/cat", "/tmp/bin/cat", "bin/cat", "/bin/../tmp/cat", ""])(
    "%j may be anything",
    (path) => {
      expect(isKnownSafe([path, "x"])).toBe(false);
    },
  );

  it.each([["rm", "x"], ["touch", "x"], ["npm", "test"], ["constructor"], ["toString"], []])(
    "%j is not one",
    (...argv) => {
      expect(isKnownSafe(argv.flat() as string[])).toBe(false);
    },
  );
});

const safe = [
  "base64 -d file",
  "base64 --decode",
  "find . -name '*.ts' -type f",
  "find src* -newer x",
  "rg -n --hidden foo src",
  "rg -e -- foo",
  "sed -n 5p",
  "sed -n 5,10p file",
  "sed -n '5,10p' a*",
  "uniq",
  "uniq -c file",
  "git status",
  "git status --short src/*",
  "git -C sub log --oneline -n 5",
  "git --no-pager diff HEAD~1 -- src",
  "git diff --stat",
  "git show HEAD^",
  "git log -p --grep=x",
  "git branch",
  "git branch -a",
  "git branch -vv --sort=-committerdate",
  "git branch --list 'feature/x'",
  "git branch --contains HEAD",
  "git branch --format '%(refname)' --merged main",
];

const unsafe = [
  "base64 -o out file",
  "base64 -do out",
  "base64 --output=x",
  "base64 --outp=x",
  "find . -exec evil {} +",
  "find . -execdir evil",
  "find . -ok evil",
  "find . -okdir evil",
  "find . -delete",
  "find . -fls x",
  "find . -fprint x",
  "find . -fprint0 x",
  "find . -fprintf x y",
  // A file may be called `-delete`.
  "find * -name x",
  "find [-]delete",
  "find -delet?",
  "find '-'exe*",
  "rg --pre evil x",
  "rg --pre=evil x",
  "rg --hostname-bin=evil x",
  "rg --hostname-bin evil x",
  "rg --search-zip x",
  "rg -z x",
  "rg -nz x",
  "rg foo *",
  "sed 5p file",
  "sed -n 5d file",
  "sed -n 5w file",
  "sed -n '5p;w x' file",
  "sed -n 5p file other",
  "sed -n 5p -i",
  "sed -n 5p -fevil",
  "sed -n 5p *",
  "sed -n [5]p file",
  "uniq in out",
  "uniq -- -in out",
  "uniq *",
  "git",
  "git commit -m x",
  "git push",
  "git -c core.pager=evil log",
  "git --config-env=core.pager=X log",
  "git --exec-path=. status",
  "git --git-dir=x status",
  "git --work-tree=x status",
  "git --namespace=x status",
  "git --super-prefix=x status",
  "git -p log",
  "git --paginate log",
  "git -C * log",
  "git log --output=x",
  "git log --outp x",
  "git log --o=x",
  "git diff --ext-diff",
  "git diff --ext-d",
  "git diff --textconv",
  "git log --exec=x",
  "git diff *",
  "git branch new",
  "git branch -d old",
  "git branch -D old",
  "git branch -m a b",
  "git branch -f main x",
  "git branch -l new",
  "git branch --list -D old",
  "git branch --contains -D",
  "git branch -a new",
  "git branch --set-upstream-to=x",
  "git branch --edit-description",
  "git branch --unset-upstream",
  "git branch *",
  "git stash",
  "git status-evil",
];

describe("a program that looks unless told otherwise", () => {
  it.each(safe)("is safe: %s", (script) => {
    expect(isKnownSafe(["bash", "-lc", script])).toBe(true);
  });

  it.each(unsafe)("is not: %s", (script) => {
    expect(isKnownSafe(["bash", "-lc", script])).toBe(false);
  });
});

describe("a script", () => {
  it.each([
    "ls && pwd",
    "ls || pwd",
    "ls; pwd;",
    "ls | head -n 1",
    "ls\npwd\n",
    "cd src && rg foo | head -5; git status",
    `echo "a b"'c d'e\\ f`,
    'echo "it costs \\$5"',
    "cat ~/notes",
  ])("of safe commands is safe: %j", (script) => {
    for (const shell of ["bash", "zsh", "sh", "/bin/bash", "/usr/bin/zsh"])
      for (const flag of ["-c", "-lc"]) expect(isKnownSafe([shell, flag, script]), shell).toBe(true);
  });

  it.each([
    "ls && evil",
    "evil; ls",
    "ls | evil",
    "ls > file",
    "ls >> file",
    "ls 2>/dev/null",
    "cat < file",
    "cat <<< text",
    "cat <<EOF\nx\nEOF",
    "cat <(evil)",
    "echo $(evil)",
    "echo `evil`",
    'echo "$(evil)"',
    'echo "`evil`"',
    "echo $HOME",
    `echo "\${HOME}"`,
    "echo $((1+1))",
    "echo $'a'",
    'echo $"a"',
    "X=1 ls",
    "X=1",
    "ls & ",
    "ls & evil",
    "(ls)",
    "{ ls; }",
    "! ls",
    "time ls",
    "coproc ls",
    "if true; then ls; fi",
    "for x in a; do ls; done",
    "while true; do ls; done",
    "ls() { evil; }; ls",
    "function ls { evil; }; ls",
    "[[ -f x ]]",
    "echo {a,b}",
    "ls # note",
    "ls |& cat",
    "ls ;; pwd",
    "ls &&",
    "ls \\\n evil",
    "echo 'unclosed",
    'echo "unclosed',
    "",
    " ",
    "# only a note",
    "#!/bin/sh\nls",
    "echo =ls",
    "cat ~root/x",
    "echo @(a|b)",
    "echo !(a)",
    "ls\r",
    "ls\u00a0-l",
    "l\u200bs",
    "echo a\u0000b",
    "echo \u202eevil",
    "alias ls=evil; ls",
    "eval ls",
    "exec ls",
    "command ls",
    "builtin echo x",
    ". ./evil",
    "source evil",
    "bash -c ls",
    "c?t x",
    "$x",
    `echo ${"a".repeat(70_000)}`,
  ])("that does more is not: %j", (script) => {
    for (const shell of ["bash", "zsh", "sh"]) expect(isKnownSafe([shell, "-lc", script]), shell).toBe(false);
  });

  it.each([
    [["bash", "ls"]],
    [["bash", "-c"]],
    [["bash", "-c", "ls", "name"]],
    [["bash", "-x", "-c", "ls"]],
    [["bash", "-ic", "ls"]],
    [["fish", "-c", "ls"]],
    [["./bash", "-c", "ls"]],
    [["env", "bash", "-c", "ls"]],
  ])("is one only as `bash|zsh|sh -lc|-c SCRIPT`: %j", (argv) => {
    expect(isKnownSafe(argv)).toBe(false);
  });

  it("of zsh with a pattern is not: zsh runs what some patterns name", () => {
    expect(isKnownSafe(["zsh", "-c", "ls *"])).toBe(false);
    expect(isKnownSafe(["zsh", "-c", "ls '*'"])).toBe(true);
  });
});

describe("risk", () => {
  it("is that of the worst command of a script", () => {
    expect(riskOf(["bash", "-c", "ls && pwd"])).toBe("safe");
    expect(riskOf(["bash", "-c", "ls && npm test"])).toBe("other");
    expect(riskOf(["bash", "-c", "ls && npm test; rm -f x"])).toBe("dangerous");
    expect(riskOf([])).toBe("other");
  });
});
