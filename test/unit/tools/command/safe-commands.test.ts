import { describe, expect, it } from "vitest";
import { CommandSafety } from "../../../../src/tools/command/command-safety.js";

const riskOf = (argv: readonly string[]) => new CommandSafety(argv).risk;
const isKnownSafe = (argv: readonly string[]) => riskOf(argv) === "safe";

const looking =
  "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc which whoami";

describe("a program that only looks", () => {
  it.each(looking.split(" "))("%s is safe with whatever arguments", (name) => {
    expect(isKnownSafe([name])).toBe(true);
    expect(isKnownSafe([name, "-a", "--", "x y", "*"])).toBe(true);
    expect(isKnownSafe(["bash", "-lc", `${name} -a 'x y' '*.ts'`])).toBe(true);
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
  "rg -n --hidden foo src",
  "rg -e -- foo",
  "sed -n 5p",
  "sed -n 5,10p file",
  "sed -n '5,10p' 'a*'",
  "uniq",
  "uniq -c file",
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
  // A file may be called `-delete`, or `--pre=evil`.
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
  'rg foo ""*',
  "rg foo ''*",
  'rg foo ""?-pre=evil',
  "rg foo [-]-pre=evil",
  "rg foo \\--pre=evil",
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
  // A repository's configuration names programs that these start.
  "git",
  "git status",
  "git status --short src",
  "git -C evil.git status",
  "git --git-dir=evil.git status",
  "git --no-pager --no-optional-locks diff --no-ext-diff --no-textconv",
  "git log --oneline",
  "git show HEAD",
  "git branch",
  "git branch -a",
  "/usr/bin/git status",
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
    "cd src && rg foo | head -5; wc -l x",
    `echo "a b"'c d'e`,
    'echo "it costs \\$5"',
    "cat '~/notes' 'HEAD^' 'a[0]'",
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
    // What becomes of these depends on files, users or the shell.
    "echo ~",
    "echo HEAD~1",
    "echo HEAD^",
    "cat ~/notes",
    "cat a~",
    "echo a\\ b",
    "ls *.ts",
    "ls ''*",
    "ls a?",
    "echo a[0]",
    "echo a]",
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
});

describe("risk", () => {
  it("is that of the worst command of a script", () => {
    expect(riskOf(["bash", "-c", "ls && pwd"])).toBe("safe");
    expect(riskOf(["bash", "-c", "ls && npm test"])).toBe("other");
    expect(riskOf(["bash", "-c", "ls && npm test; rm -f x"])).toBe("dangerous");
    expect(riskOf([])).toBe("other");
  });
});
