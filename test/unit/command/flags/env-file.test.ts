import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, it, onTestFinished } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import type { CliContext } from "../../../../src/command/context.js";
import { readEnvFile } from "../../../../src/command/flags/env-file.js";
import { addVariableOptions } from "../../../../src/command/flags/variable-options.js";
import { testContext } from "../../../support/cli-context.js";

async function parse(text: string): Promise<Record<string, string>> {
  const cwd = await files({ "v.env": text });
  return await readEnvFile("v.env", { ...testContext({ variables: { HOME_TOWN: "Ulm" } }), cwd });
}

describe("a file of variables", () => {
  it("is read as Docker reads it: quotes and blanks belong to the value, and comments are whole lines", async () => {
    const text = [
      "# a comment",
      "",
      "   ",
      "A=1",
      'C="quoted" # not a comment',
      "D=",
      "E=x=y",
      "F= with blanks ",
    ];
    expect(await parse(text.join("\n"))).toEqual({
      A: "1",
      C: '"quoted" # not a comment',
      D: "",
      E: "x=y",
      F: " with blanks ",
    });
  });

  it("passes on the variable of this machine for a name alone, and nothing if there is none", async () => {
    expect(await parse("HOME_TOWN\nNOT_THERE\ntoString\n")).toEqual({ HOME_TOWN: "Ulm" });
  });

  it("may have blanks before a name, the line ends of Windows, and the same name twice: the last one counts", async () => {
    expect(await parse("  A=1\r\nB=2\r\nA=3\r\n")).toEqual({ A: "3", B: "2" });
  });

  it("keeps a variable that objects have by themselves", async () => {
    expect(Object.entries(await parse("__proto__=1\nconstructor=2"))).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
  });

  it.each([
    ["A=1\n=secret", "v.env:2 has no name"],
    ["MY KEY=secret", "v.env:1 has a blank"],
    ["A =secret", "v.env:1 has a blank"],
    ["export A=secret", "v.env:1 has a blank"],
    ["A=se\0cret", "v.env:1 contains a NUL"],
  ])("is refused with the line, and without a value that may be a secret: %j", async (text, message) => {
    const refused = expect.objectContaining({
      code: "usage.invalid",
      message: expect.stringContaining(message),
    });
    const error = await parse(text).catch((reason: unknown) => reason);
    expect(error).toEqual(refused);
    expect(String(error)).not.toContain("secret");
  });
});

async function files(contents: Record<string, string | Uint8Array>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "brig-env-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(contents)) await writeFile(join(directory, name), text);
  return directory;
}

/** Runs a command line of `brig probe`, and returns what its action gets. */
async function probe(argv: string[], { cwd = "/" }: { cwd?: string } = {}) {
  const context = { ...testContext({ variables: { FROM_HERE: "yes" } }), cwd };
  let flags: object | undefined;
  const load = async () => (command: Command, _context: CliContext) => {
    addVariableOptions(command.argument("[words...]"))
      .passThroughOptions()
      .action((words, given) => {
        flags = { words, ...given };
      });
  };
  const status = await runProgram(["probe", ...argv], {
    context,
    commands: [{ name: "probe", summary: "", load }],
  });
  return { status, flags, stderr: context.written().stderr };
}

describe("--env-file", () => {
  it("gives the variables of several files to the command, the later file before the earlier, and --env before both", async () => {
    const cwd = await files({ "a.env": "A=a\nB=a\nC=a\nFROM_HERE\n", "b.env": "B=b\nC=b\n" });
    const { flags } = await probe(["-e", "C=flag", "--env-file", "a.env", "--env-file", "b.env"], { cwd });
    expect(flags).toEqual({
      words: [],
      env: { A: "a", B: "b", C: "flag", FROM_HERE: "yes" },
      envFile: undefined,
    });
  });

  it("after the command is the command's own", async () => {
    const { flags } = await probe(["node", "--env-file=x.env", "-e", "1"]);
    expect(flags).toEqual({ words: ["node", "--env-file=x.env", "-e", "1"] });
  });

  it.each([
    ["no-such.env", "no such file"],
    [".", "a directory"],
    ["bytes.env", "is not text in UTF-8"],
    ["wrong.env", "wrong.env:1 has no name"],
  ])("that cannot be read ends with 2, and says why: %s", async (file, reason) => {
    const cwd = await files({ "bytes.env": Buffer.from([0x41, 0x3d, 0xff]), "wrong.env": "=x" });
    const { status, flags, stderr } = await probe(["--env-file", file], { cwd });
    expect({ status, flags }).toEqual({ status: 2, flags: undefined });
    expect(stderr).toContain(reason);
  });

  it("does not read a file for a command that only prints its help", async () => {
    const context = testContext();
    expect(await runProgram(["exec", "--env-file", "/no/such", "--help"], { context, commands })).toBeNull();
  });
});
