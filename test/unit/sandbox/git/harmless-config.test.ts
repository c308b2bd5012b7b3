import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { harmlessConfig } from "../../../../src/sandbox/receipt/disarm-repositories.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const usual = `[core]
	repositoryformatversion = 0
	bare = false
[remote "o\\"x"]
	url = git@example.com:a/b.git
	fetch = +refs/heads/*:refs/remotes/o/*
[branch "main"]
	remote = o
[user]
	name = "A \\"b\\\\ c"
`;

describe("settings that can do no harm", () => {
  it("are all there is in the configuration of a usual repository", () => {
    expect(harmlessConfig(usual)).toBeNull();
    expect(harmlessConfig("")).toBeNull();
  });

  it.each([
    ...[
      "core.fsmonitor",
      "core.hooksPath",
      "core.pager",
      "core.sshCommand",
      "include.path",
      "alias.st",
      "core.worktree",
    ],
    ...[
      "includeIf.gitdir:/x.path",
      "filter.x.clean",
      "gc.recentObjectsHook",
      "init.templateDir",
      "hook.x.command",
    ],
    ...[
      "extensions.worktreeConfig",
      "credential.helper",
      "remote.o.uploadpack",
      "submodule.x.update",
      "unknown.key",
    ],
  ])("are not %s", (name) => {
    const parts = name.split(".");
    const sub = parts.slice(1, -1).join(".");
    const text = `[${parts[0]}${sub === "" ? "" : ` "${sub}"`}]\n\t${parts.at(-1)} = touch canary\n`;
    expect(harmlessConfig(text)).toBe("");
    expect(harmlessConfig(`[user]\nname = x\n${text}`)).toBe('[user]\n\tname = "x"\n');
  });

  it.each(["ext::sh -c x", "-u x", "fd::3"])("are no URL such as %s", (url) => {
    expect(harmlessConfig(`[remote "o"]\nurl = ${url}\n`)).toBe("");
    expect(harmlessConfig(`[branch "b"]\nremote = ${url}\n`)).toBe("");
  });

  it("are read by git as they were", async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, "config");
    const read = (text: string) => {
      writeFileSync(file, text);
      return execFileSync("git", ["config", "--file", file, "--list", "-z"], { encoding: "utf8" });
    };
    const text = `${usual}[user]\n\temail = " a#b\\tc "\n\tuseConfigOnly\n`;
    expect(read(harmlessConfig(`${text}[core]\n\tfsmonitor = x\n`) ?? "")).toBe(read(text));
  });
});
