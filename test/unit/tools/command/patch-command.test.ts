import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PatchCommand, ReadCommand } from "../../../../src/tools/command/read-command.js";
import { line, patchOf } from "../patch/patches.js";

const recognisePatchCommand = (argv: readonly string[]) => new ReadCommand(argv).patch;

const patch = patchOf("*** Add File: f", "+a");
const found = (directory: string | null = null, text = patch): PatchCommand => ({
  kind: "patch",
  patch: text,
  directory,
});
const other = null;
const bare: PatchCommand = { kind: "bare-patch" };
const bash = (script: string) => recognisePatchCommand(["bash", "-lc", script]);
const heredoc = (head: string, tail = "EOF\n") => `${head}\n${patch}\n${tail}`;

describe("an argument vector that applies a patch", () => {
  it.each([
    [["apply_patch", patch]],
    [["applypatch", patch]],
    [["bash", "-lc", heredoc("apply_patch <<EOF")]],
    [["bash", "-c", heredoc("apply_patch <<EOF")]],
    [["/usr/bin/bash", "-lc", heredoc("apply_patch <<EOF")]],
    [["zsh", "-lc", heredoc("apply_patch <<EOF")]],
    [["/bin/sh", "-c", heredoc("apply_patch <<EOF")]],
    [["pwsh", "-Command", heredoc("apply_patch <<EOF")]],
    [["powershell.exe", "-NoProfile", "-Command", heredoc("apply_patch <<EOF")]],
    [["cmd.exe", "/c", heredoc("apply_patch <<EOF")]],
  ])("is %j", (argv) => {
    expect(recognisePatchCommand(argv)).toEqual(found());
  });

  it.each([
    [["apply_patch"]],
    [["apply_patch", patch, "more"]],
    [["/usr/bin/apply_patch", patch]],
    [["git", "apply", patch]],
    [["bash", "-x", heredoc("apply_patch <<EOF")]],
    [["bash", "-lc", heredoc("apply_patch <<EOF"), "more"]],
    [["bash", "-NoProfile", "-c", heredoc("apply_patch <<EOF")]],
    [["python3", "-c", heredoc("apply_patch <<EOF")]],
    [["constructor", "-c", heredoc("apply_patch <<EOF")]],
    [[]],
  ])("is not %j", (argv) => {
    expect(recognisePatchCommand(argv)).toEqual(other);
  });

  it.each([[[patch]], [["bash", "-lc", patch]], [["bash", "-lc", `\n${patch}\n`]]])(
    "is missed around the bare patch in %j",
    (argv) => {
      expect(recognisePatchCommand(argv)).toEqual(bare);
    },
  );
});

describe("a script that applies a patch", () => {
  it.each([
    ["a quoted tag", heredoc("apply_patch <<'EOF'")],
    ["a doubly quoted tag", heredoc('apply_patch <<"EOF"')],
    ["an escaped tag", heredoc("apply_patch <<\\EOF")],
    ["another tag", heredoc("apply_patch <<'END OF PATCH'", "END OF PATCH\n")],
    ["another name", heredoc("applypatch <<EOF")],
    ["blanks", heredoc("\n\n\t apply_patch\t<< EOF  ", "EOF\n\n \n")],
    ["no blank", heredoc("apply_patch<<EOF")],
    ["a continued line", heredoc("apply_patch \\\n <<EOF")],
    ["no final newline", heredoc("apply_patch <<EOF", "EOF")],
    ["blanks after the last line's tag", heredoc("apply_patch <<EOF", "EOF  \n")],
    ["nothing that ends the heredoc", heredoc("apply_patch <<EOF", "")],
    ["tabs that the heredoc drops", heredoc("apply_patch <<-EOF", "\tEOF\n").replace("***", "\t\t***")],
  ])("may have %s", (_, script) => {
    expect(bash(script)).toEqual(found());
  });

  it.each([
    ["cd sub && apply_patch <<EOF", "sub"],
    ["cd sub/a-b_c.d+e@f:g,h=i% && apply_patch <<EOF", "sub/a-b_c.d+e@f:g,h=i%"],
    ["cd ünïcode && apply_patch <<EOF", "ünïcode"],
    ["cd /abs/sub&&apply_patch<<EOF", "/abs/sub"],
    ["cd ../sub &&\n  apply_patch <<EOF", "../sub"],
    ["cd 'a $b' && apply_patch <<EOF", "a $b"],
    ["cd '' && apply_patch <<EOF", ""],
    ['cd "a b" && apply_patch <<EOF', "a b"],
    ['cd "~" && apply_patch <<EOF', "~"],
  ])("starts its paths where %j says", (head, directory) => {
    expect(bash(heredoc(head))).toEqual(found(directory));
  });

  it.each([
    "cd $PWD && apply_patch <<EOF",
    'cd "$PWD" && apply_patch <<EOF',
    "cd `pwd` && apply_patch <<EOF",
    "cd ~ && apply_patch <<EOF",
    "cd ~/sub && apply_patch <<EOF",
    "cd su* && apply_patch <<EOF",
    "cd s[u]b && apply_patch <<EOF",
    "cd {a,b} && apply_patch <<EOF",
    "cd su\\b && apply_patch <<EOF",
    "cd s'u'b && apply_patch <<EOF",
    'cd "s\\"b" && apply_patch <<EOF',
    'cd "" && apply_patch <<EOF',
    "cd - && apply_patch <<EOF",
    "cd -P sub && apply_patch <<EOF",
    "cd -- sub && apply_patch <<EOF",
    "cd && apply_patch <<EOF",
    "cd a b && apply_patch <<EOF",
    "cd a && cd b && apply_patch <<EOF",
    "cd a >x && apply_patch <<EOF",
    "cd a; apply_patch <<EOF",
    "cd a || apply_patch <<EOF",
    "cd a | apply_patch <<EOF",
    "cd a\napply_patch <<EOF",
    "apply_patch <<EOF && echo done",
    "apply_patch <<EOF;",
    "apply_patch <<EOF &",
    "apply_patch <<EOF | cat",
    "apply_patch <<EOF >out",
    "apply_patch >out <<EOF",
    "apply_patch -v <<EOF",
    "apply_patch 0<<EOF",
    "apply_patch <<EOF # now",
    "<<EOF apply_patch",
    "X=1 apply_patch <<EOF",
    "'apply_patch' <<EOF",
    "! apply_patch <<EOF",
    "(apply_patch <<EOF",
    "{ apply_patch <<EOF",
    "# now\napply_patch <<EOF",
    "echo now\napply_patch <<EOF",
    "apply_patches <<EOF",
  ])("is not one that starts with %j", (head) => {
    expect(bash(heredoc(head))).toEqual(other);
  });

  it.each([
    ["a command after it", heredoc("apply_patch <<EOF", "EOF\necho done\n")],
    ["a comment after it", heredoc("apply_patch <<EOF", "EOF\n# done\n")],
    ["the tag inside it", `apply_patch <<EOF\nEOF\n${patch}\nEOF\n`],
    ["a here-string", `apply_patch <<<'${patch}'`],
    ["the patch as argument", `apply_patch '${patch}'`],
  ])("is not one with %s", (_, script) => {
    expect(bash(script)).toEqual(other);
  });

  it("gives what the shell itself would hand to the program", () => {
    const body = fc
      .array(
        line.map((text) => `+${text}`),
        { maxLength: 6 },
      )
      .map((lines) => lines.join("\n"));
    fc.assert(
      fc.property(body, fc.constantFrom("<<'EOF'", "<<-'EOF'", "<<'a b'"), (text, redirect) => {
        const tag = redirect.includes("EOF") ? "EOF" : "a b";
        const script = `apply_patch ${redirect}\n${text}\n${tag}\n`;
        const recognised = bash(script);
        const given = execFileSync("bash", ["-c", script.replace("apply_patch", "cat")], {
          encoding: "utf8",
        });
        expect(recognised?.kind === "patch" && `${recognised.patch}\n`).toBe(given);
      }),
      { numRuns: 40 },
    );
  });
});
