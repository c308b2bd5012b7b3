import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import { familiarCommands } from "../../../../src/cli/usage/familiar-commands.js";
import { familiarOptions } from "../../../../src/cli/usage/familiar-options.js";
import { testContext } from "../../../support/cli-context.js";

async function hintOf(argv: string[], options = {}): Promise<string> {
  const context = testContext(options);
  await runProgram(argv, { context, commands });
  return context.written().stderr;
}

/** Every command of brig, as commander knows it. */
async function defined(): Promise<Command[]> {
  return await Promise.all(
    commands.map(async ({ name, load }) => {
      const command = new Command(name);
      (await load())(command, testContext({}));
      return command;
    }),
  );
}

function has(command: Command, flag: string): boolean {
  return command.options.some(({ long, short }) => long === flag || short === flag);
}

describe("somebody who knows Docker or Codex", () => {
  it.each([
    [["exec", "-m", "512m", "--", "true"], "--memory 512m; see: brig exec --help"],
    [["exec", "--pids-limit", "9", "--", "true"], "--pids NUMBER"],
    [["exec", "--image", "debian", "--", "true"], "--container-image IMAGE"],
    [["shell", "--rm"], "leave it out"],
    [["run", "--yolo", "x"], "--sandbox danger-full-access"],
    [["inspect"], "brig sessions proof ID; see: brig --help"],
  ])("is told how brig says it: %j", async (argv, hint) => {
    expect(await hintOf(argv)).toContain(hint);
  });

  it.each([
    [["kill", "-9", "my-sandbox"], "brig gc --kept"],
    [["list", "--all"], "brig ps"],
    [["ls"], "brig ps"],
    [["start", "my-sandbox"], "brig up"],
    [["down"], "brig rm"],
  ])("is told what to use today instead of %j, in one line, with exit 2", async (argv, hint) => {
    const context = testContext({});
    expect(await runProgram(argv, { context, commands })).toBe(2);
    const lines = context.written().stderr.trimEnd().split("\n");
    expect(lines).toEqual([`brig: unknown command '${argv[0]}'`, expect.stringContaining(hint)]);
    expect(lines[1]).toMatch(/^hint: /);
  });

  it.each(["toString", "__proto__", "constructor"])("is told nothing odd of %s", async (word) => {
    expect(await hintOf([word])).toMatch(/^hint: see: brig --help$/m);
    expect(await hintOf(["exec", `--${word}`])).toMatch(/^hint: see: brig exec --help$/m);
  });

  it("is told it at a terminal, too, where other words are prompts", async () => {
    expect(await hintOf(["prune"], { isTerminal: true, variables: { TERM: "xterm" } })).toContain("brig gc");
  });

  it("is told of options that there are, where the familiar one is missing", async () => {
    const all = await defined();
    for (const [flag, { needs }] of familiarOptions) {
      const without = all.filter((command) => !has(command, flag));
      expect(
        without.some((command) => needs === undefined || has(command, needs)),
        flag,
      ).toBe(true);
    }
  });

  it("is told of commands that there are", async () => {
    const all = await defined();
    for (const [word, hint] of Object.entries(familiarCommands)) {
      expect(all.map((command) => command.name())).not.toContain(word);
      for (const [, name, below] of hint.matchAll(/brig ([a-z]+)(?: ([a-z]+))?/g)) {
        const named = all.find((command) => command.name() === name);
        expect(named, hint).toBeDefined();
        if (below !== undefined)
          expect(
            named?.commands.map((command) => command.name()),
            hint,
          ).toContain(below);
      }
    }
  });
});
