import { describe, expect, it } from "vitest";
import { type CodexFlags, readCodexFlags, refuseUnsupported } from "../../../../src/cli/codex/codex-flags.js";
import { optionsAfterCommand, runCodexProgram } from "../../../../src/cli/codex/codex-program.js";
import { readEnvironment } from "../../../../src/config/env.js";
import { testContext } from "../../../support/cli-context.js";

const environment = readEnvironment({ HOME: "/home/a" });

function runFlags(flags: CodexFlags) {
  const { run } = readCodexFlags(flags, environment);
  return Object.fromEntries(Object.entries(run).filter(([, value]) => value !== undefined));
}

const always = { askForApproval: "never", config: [], treeRecord: false };

describe("the flags of codex exec", () => {
  it.each<[CodexFlags, object]>([
    [{}, {}],
    [{ fullAuto: true }, { sandbox: "workspace-write" }],
    [{ fullAuto: true, sandbox: "read-only" }, { sandbox: "read-only" }],
    [{ yolo: true }, { sandbox: "danger-full-access" }],
    [{ oss: true }, { model: "gpt-oss:20b", config: ['model_provider="ollama"'] }],
    [
      { oss: true, localProvider: "lmstudio", model: "mine" },
      { model: "mine", config: ['model_provider="lmstudio"'] },
    ],
    [{ localProvider: "lmstudio" }, {}],
    [{ enable: ["a"], disable: ["b_c"] }, { config: ["features.a=true", "features.b_c=false"] }],
    [
      { search: true, config: ['web_search="disabled"'] },
      {
        config: ['web_search="live"', 'web_search="disabled"'],
      },
    ],
    [
      { json: true, cd: "/w", addDir: ["/d"], image: ["a.png"], ephemeral: true, last: true },
      {
        json: true,
        cd: "/w",
        addDir: ["/d"],
        image: ["a.png"],
        ephemeral: true,
        last: true,
      },
    ],
  ])("%j become those of brig", (flags, expected) => {
    expect(runFlags(flags)).toEqual({ ...always, ...expected });
  });

  it.each<[CodexFlags, RegExp]>([
    [{ yolo: true, sandbox: "read-only" }, /cannot be combined with --sandbox or --full-auto/],
    [{ yolo: true, fullAuto: true }, /cannot be combined with --sandbox or --full-auto/],
    [{ oss: true, localProvider: "vllm" }, /no local provider "vllm"/],
    [{ oss: true, localProvider: "constructor" }, /no local provider "constructor"/],
    [{ enable: ["a=1\nsandbox_mode"] }, /is not a valid feature name/],
  ])("%j are refused", (flags, message) => {
    expect(() => readCodexFlags(flags, environment)).toThrow(message);
  });

  it.each<[CodexFlags, string[]]>([
    [{ approveForMe: true }, []],
    [{ worktree: true }, []],
    [{ cyberAccessProgram: "standard" }, []],
    [{}, ["review"]],
    [{}, ["fork", "id"]],
  ])("%j with the words %j are refused, with what to do instead", (flags, words) => {
    expect(() => refuseUnsupported(flags, words)).toThrow(
      expect.objectContaining({ code: "usage.invalid", hint: expect.any(String) }),
    );
  });

  it("turn colours off where --color says so, and leave them as they are otherwise", () => {
    expect(readCodexFlags({ color: "never" }, environment).environment.forbidsColor).toBe(true);
    expect(readCodexFlags({ color: "always" }, environment).environment).toBe(environment);
  });

  it.each([
    [
      ["exec", "--json", "p"],
      ["exec", "--json", "p"],
    ],
    [
      ["-a", "never", "exec", "p"],
      ["exec", "-a", "never", "p"],
    ],
    [
      ["-c", "a=1", "e", "resume", "--last"],
      ["exec", "-c", "a=1", "resume", "--last"],
    ],
    [["login"], ["login"]],
    [
      ["--", "exec"],
      ["--", "exec"],
    ],
  ])("%j is read as %j", (given, expected) => {
    expect(optionsAfterCommand(given)).toEqual(expected);
  });
});

describe("brig-codex", () => {
  it.each([
    [["login"], /login/],
    [["exec", "fix", "it"], /put the prompt in quotes/],
    [["exec", "resume"], /no session given/],
    [["exec", "--frobnicate", "x"], /--frobnicate/],
    [["exec", "--color", "sometimes", "x"], /always, never, auto/],
  ])("%j is bad usage", async (argv, message) => {
    const context = testContext();
    expect(await runCodexProgram(argv, context)).toBe(2);
    expect(context.written().stderr).toMatch(message);
  });

  it("prints its help where nothing is asked, and never begins a conversation", async () => {
    const context = testContext();
    expect(await runCodexProgram([], context)).toBeNull();
    expect(context.written().stdout).toContain("Usage: brig-codex");
  });
});
