import { expect, it } from "vitest";
import { ReadCommand } from "../../../../src/tools/command/read-command.js";
import { patchOf } from "../patch/patches.js";

const patch = patchOf("*** Add File: f", "+a");
const heredoc = `apply_patch <<'EOF'\n${patch}\nEOF\n`;
const bash = (script: string) => ["bash", "-lc", script];

/** What a command is read as: the kind of its patch, what it could do, and its commands. */
const table: readonly [argv: readonly string[], patch: string | null, risk: string, commands: unknown][] = [
  // Plain commands, alone and in a shell.
  [["ls", "-l"], null, "safe", [["ls", "-l"]]],
  [["npm", "test"], null, "other", [["npm", "test"]]],
  [["rm", "-rf", "x"], null, "dangerous", [["rm", "-rf", "x"]]],
  [bash("ls -l"), null, "safe", [["ls", "-l"]]],
  [bash("ls && npm test"), null, "other", [["ls"], ["npm", "test"]]],
  [bash("ls; rm -rf x"), null, "dangerous", [["ls"], ["rm", "-rf", "x"]]],
  // Scripts that are not plain have no list of commands, and are never safe.
  [bash("ls > x"), null, "other", null],
  [bash("echo $(rm -rf x)"), null, "dangerous", null],
  [bash("bash -c 'rm -rf x'"), null, "dangerous", [["bash", "-c", "rm -rf x"]]],
  [["bash", "-xc", "ls"], null, "other", [["bash", "-xc", "ls"]]],
  [["bash", "-xc", "rm -rf x"], null, "dangerous", [["bash", "-xc", "rm -rf x"]]],
  [["/work/bash", "-c", "ls"], null, "other", [["/work/bash", "-c", "ls"]]],
  // A command that only applies a patch, and a patch where a command should be.
  [["apply_patch", patch], "patch", "other", [["apply_patch", patch]]],
  [bash(heredoc), "patch", "other", null],
  [bash(`cd d && ${heredoc}`), "patch", "other", null],
  [["bash", "-x", heredoc], null, "other", [["bash", "-x", heredoc]]],
  [bash(`${heredoc}rm -rf x\n`), null, "dangerous", null],
  [bash(`ls && ${heredoc}`), null, "other", null],
  [[patch], "bare-patch", "other", [[patch]]],
  [bash(patch), "bare-patch", "other", null],
  [bash(`echo '${patch}'`), null, "safe", [["echo", patch]]],
  [bash("*** Begin Patch"), null, "other", null],
  // Nothing at all.
  [[], null, "other", [[]]],
  [[""], null, "other", [[""]]],
  [bash(""), null, "other", null],
];

it.each(table)("%j is read", async (argv, kind, risk, commands) => {
  const command = new ReadCommand(argv);
  expect(command.argv).toBe(argv);
  expect(command.patch?.kind ?? null).toBe(kind);
  expect(await command.safety()).toMatchObject({ risk, commands });
});

it("what a command could do is found out once", async () => {
  const command = new ReadCommand(bash("ls"));
  const [one, other] = await Promise.all([command.safety(), command.safety()]);
  expect(one).toBe(other);
  expect(await command.safety()).toBe(one);
});
