import { Command } from "commander";
import { describe, expect, it } from "vitest";
import {
  addSandboxOptions,
  commandDirectory,
  flaggedSettings,
} from "../../../../src/command/flags/sandbox-flags.js";
import { testContext } from "../../../support/cli-context.js";

function parse(...argv: string[]) {
  const command = addSandboxOptions(
    new Command("x").exitOverride().configureOutput({ writeErr: () => undefined }),
  );
  return command.parse(argv, { from: "user" }).opts();
}

describe("flaggedSettings", () => {
  it("without flags is the current directory under the default policy", () => {
    const context = testContext();
    expect(flaggedSettings(parse(), context)).toMatchObject({
      workspace: "/start",
      mode: undefined,
      environment: context.environment,
    });
  });

  it("resolves every path against the directory brig was started in", () => {
    const flags = parse("-C", "in", "--policy", "p.toml", "--add-dir", "a", "--add-dir", "/b");
    expect(flaggedSettings(flags, testContext())).toMatchObject({
      workspace: "/start/in",
      policyFile: "/start/p.toml",
      addDirs: ["/start/a", "/b"],
    });
  });

  it("passes the other flags on", () => {
    const flags = parse(
      ...["-s", "read-only", "--container-image", "i", "--runtime", "runsc", "--network", "none", "--keep"],
      ...["--env", "A=1", "-e", "B=", "--env", "C=x=y", "--memory", "1.5g", "--cpus", ".5", "--pids", "99"],
    );
    expect(flaggedSettings(flags, testContext())).toMatchObject({
      mode: "read-only",
      image: "i",
      runtime: "runsc",
      network: "none",
      keep: true,
      env: { A: "1", B: "", C: "x=y" },
      limits: { memoryMb: 1536, cpus: 0.5, pids: 99 },
    });
  });

  it("refuses a mode together with a policy file, for commands with a configuration too", () => {
    expect(() => flaggedSettings(parse("-s", "read-only", "--policy", "open.toml"), testContext())).toThrow(
      expect.objectContaining({
        code: "usage.invalid",
        message: "--sandbox and --policy were both given",
        hint: "leave one of them out",
      }),
    );
  });

  it("a mode is never taken for a file's path", () => {
    expect(() => flaggedSettings(parse("-s", "./danger.toml"), testContext())).toThrow(
      "is not a sandbox mode",
    );
  });

  it("takes a copy-on-write workspace, and leaves the kind open without the flag", () => {
    const context = testContext();
    expect(flaggedSettings(parse("--workspace", "overlay"), context)).toMatchObject({
      workspace: context.cwd,
      workspaceKind: "overlay",
    });
    expect(flaggedSettings(parse(), context).workspaceKind).toBeUndefined();
  });

  it.each(["copy", "tmpfs"])("refuses a workspace of kind %s", (kind) => {
    expect(() => flaggedSettings(parse("--workspace", kind), testContext())).toThrow(kind);
  });

  it.each(["A", "=x", ""])("refuses --env %j", (assignment) => {
    expect(() => parse("--env", assignment)).toThrow("NAME=VALUE");
  });
});

describe("commandDirectory", () => {
  it("is what -C says only where there is no workspace", () => {
    expect(commandDirectory(parse("-C", "/x"))).toBeUndefined();
    expect(commandDirectory(parse("-C", "/x", "--workspace", "none"))).toBe("/x");
    expect(commandDirectory(parse("--workspace", "none"))).toBeUndefined();
  });
});
