import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import { addLimitOptions, flaggedLimits } from "../../../../src/command/flags/limit-options.js";
import { testContext } from "../../../support/cli-context.js";

function parse(...argv: string[]) {
  const command = addLimitOptions(
    new Command("x").exitOverride().configureOutput({ writeErr: () => undefined }),
  );
  return flaggedLimits(command.parse(argv, { from: "user" }).opts());
}

describe("the flags for limits", () => {
  it("set nothing where they are not given", () => {
    expect(parse()).toBeUndefined();
    expect(parse("--cpus", "2")).toEqual({ memoryMb: undefined, cpus: 2, pids: undefined });
  });

  it.each([
    ["512m", 512],
    ["2g", 2048],
    ["2G", 2048],
    ["1.5g", 1536],
    ["2GiB", 2048],
    ["512mb", 512],
    ["131072k", 128],
    ["134217728", 128],
    ["134217728b", 128],
    ["100000k", 97],
  ])("take %s of memory as Docker does", (text, memoryMb) => {
    expect(parse("--memory", text)).toMatchObject({ memoryMb });
  });

  it.each([
    ["--memory", "much", "512m or 2g"],
    ["--memory", "", "512m or 2g"],
    ["--memory", "-512m", "512m or 2g"],
    ["--memory", "512x", "512m or 2g"],
    ["--memory", "63m", "at least 64m"],
    ["--memory", "0", "at least 64m"],
    ["--memory", "512", "without a unit is in bytes"],
    ["--cpus", "0", "cores such as 2 or 0.5"],
    ["--cpus", "-1", "cores such as 2 or 0.5"],
    ["--cpus", "two", "cores such as 2 or 0.5"],
    ["--cpus", "1e3", "cores such as 2 or 0.5"],
    ["--cpus", "Infinity", "cores such as 2 or 0.5"],
    ["--cpus", ".", "cores such as 2 or 0.5"],
    ["--pids", "0", "from 16 to 4194304"],
    ["--pids", "15", "from 16 to 4194304"],
    ["--pids", "4194305", "from 16 to 4194304"],
    ["--pids", "1.5", "from 16 to 4194304"],
    ["--pids", "many", "from 16 to 4194304"],
  ])("refuse %s %s by name, and say what is expected", (flag, text, expected) => {
    // With =, since a value such as -1 would be taken for an option.
    expect(() => parse(`${flag}=${text}`)).toThrow(flag);
    expect(() => parse(`${flag}=${text}`)).toThrow(expected);
  });
});

describe("every command that opens a sandbox", () => {
  const opening = [
    ...["run", "resume", "exec", "shell", "wrap", "tool", "bisect", "replay"],
    ...["exec-server", "mcp-server", "serve", "acp", "up", "review"],
  ];

  it("is among those that name the image of a container", async () => {
    const named = await Promise.all(
      commands.map(async ({ name, load }) => {
        const command = new Command(name);
        (await load())(command, testContext());
        return command.options.some(({ long }) => long === "--container-image") ? [name] : [];
      }),
    );
    expect(named.flat().toSorted()).toEqual([...opening, "doctor"].toSorted());
  });

  it.each(opening)("takes limits, and variables from files: brig %s", async (name) => {
    const help = testContext();
    await runProgram([name, "--help"], { context: help, commands });
    for (const flag of ["--memory", "--cpus", "--pids", "-e, --env", "--env-file"])
      expect(help.written().stdout).toContain(flag);
  });

  it.each(opening)("refuses nonsense as bad usage: brig %s", async (name) => {
    const context = testContext();
    const status = await runProgram([name, "--memory", "much"], { context, commands });
    const passesOn = commands.find((one) => one.name === name)?.passesExitCodeOn === true;
    expect(status).toBe(passesOn ? 125 : 2);
    expect(context.written().stderr).toMatch(/--memory <size>.*much.*512m or 2g/);
  });
});
