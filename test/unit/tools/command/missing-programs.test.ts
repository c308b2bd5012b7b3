import { describe, expect, it } from "vitest";
import { textMessage } from "../../../../src/agent/model/items.js";
import { isFromUser } from "../../../../src/agent/session/compacted-items.js";
import { MissingPrograms } from "../../../../src/tools/command/command-output.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const adviceFor = (output: string, { argv = ["bash", "-lc", "x"], exitCode = 127 } = {}) =>
  new MissingPrograms().advice({ argv, exitCode, output }, "acme/base:1");

describe("a program that a shell did not find", () => {
  it.each([
    ["bash", "bash: line 1: npm: command not found\n"],
    ["bash, behind other output", "building\n/bin/bash: line 3: npm: command not found\n"],
    ["dash", "/bin/sh: 1: npm: not found\n"],
    ["busybox", "sh: npm: not found\n"],
    ["zsh", "zsh:1: command not found: npm\n"],
    ["on a terminal", "bash: line 1: npm: command not found\r\n"],
    ["env", "/usr/bin/env: ‘npm’: No such file or directory\n"],
  ])("is named as %s names it", (_what, output) => {
    expect(adviceFor(output)).toBe(
      "Warning: the program npm was not found in the sandbox's image acme/base:1. The user can choose another image with --container-image.",
    );
  });

  it.each([
    ["another end", "bash: line 1: npm: command not found\n", 1],
    ["a script that is not there", "bash: line 1: ./build.sh: No such file or directory\n", 127],
    ["a path", "sh: 1: ./npm: not found\n", 127],
    ["more than a name", `bash: line 1: ${"x".repeat(65)}: command not found\n`, 127],
    ["what would steer a terminal", "bash: line 1: \x1b[2Jx: command not found\n", 127],
    ["other text", "Package npm could not be found\n", 127],
  ])("is not told of by %s", (_what, output, exitCode) => {
    expect(adviceFor(output, { exitCode })).toBeNull();
  });

  it("is told of once, and of ten at most", () => {
    const missing = new MissingPrograms();
    const tell = (program: string) =>
      missing.advice({ argv: [], exitCode: 127, output: `sh: ${program}: not found\n` }, undefined);
    expect(tell("npm")).toContain("the sandbox's image.");
    expect(tell("npm")).toBeNull();
    const told = Array.from({ length: 50 }, (_, at) => tell(`program-${at}`)).filter((text) => text !== null);
    expect(told).toHaveLength(9);
  });

  it("is no word of the user's to a summary", () => {
    const advice = adviceFor("sh: npm: not found\n") ?? "";
    expect(isFromUser(textMessage("user", advice))).toBe(false);
  });
});

describe("the advice about a missing program", () => {
  const missing = "no-such-program-1";

  it.each([
    ["shell", { command: ["bash", "-c", missing] }],
    ["shell", { command: [missing] }],
    ["shell_command", { command: missing, login: false }],
    ["exec_command", { cmd: missing, login: false }],
  ])("comes beside the output of %s, which stays as it is, once in a session", async (name, args) => {
    const advice: string[] = [];
    const registry = createToolRegistry(new MemorySandbox(), { cwd: "/" });
    const call = async () =>
      await registry.get(name).execute(args, {
        onActivity: (activity) => {
          if (activity.kind === "advice") advice.push(activity.text);
        },
      });
    const { content } = await call();
    await call();
    expect(advice).toEqual([expect.stringContaining(`the program ${missing} was not found in`)]);
    expect(JSON.stringify(content)).not.toContain("--container-image");
  });
});
