import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type CodexFlags, readCodexFlags, refuseUnsupported } from "../../../../src/cli/codex/codex-flags.js";
import {
  oneImageEach,
  optionsAfterCommand,
  runCodexProgram,
} from "../../../../src/cli/codex/codex-program.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { testContext } from "../../../support/cli-context.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { gif } from "../../tools/picture/pictures.js";

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
    [{ json: true }, ["review"]],
    [{ base: "main" }, ["do it"]],
    [{}, ["fork", "id"]],
  ])("%j with the words %j are refused, with what to do instead", (flags, words) => {
    expect(() => refuseUnsupported(flags, words)).toThrow(
      expect.objectContaining({ code: "usage.invalid", hint: expect.any(String) }),
    );
  });

  it("turn colours off or on where --color says so, and leave them as they are otherwise", () => {
    expect(readCodexFlags({ color: "never" }, environment).environment.forbidsColor).toBe(true);
    expect(readCodexFlags({ color: "always" }, environment).environment.forcesColor).toBe(true);
    expect(readCodexFlags({ color: "auto" }, environment).environment).toBe(environment);
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

describe("the images of codex exec", () => {
  it.each([
    ["exec -i a b --json p", "exec --image=a --image=b --json p"],
    ["exec p --image a,b", "exec p --image=a,b"],
    ["exec --image a -", "exec --image=a -"],
    ["exec -i a -- p", "exec --image=a -- p"],
    ["exec resume --last -i a p", "exec resume --last --image=a p"],
    ["exec resume ID -i a -i b -", "exec resume ID --image=a --image=b -"],
    ["exec -i", "exec -i"],
    ["exec -i --json p", "exec -i --json p"],
    ["exec -- -i a b", "exec -- -i a b"],
  ])("%s are those of %s", (given, expected) => {
    expect(oneImageEach(given.split(" ")).join(" ")).toBe(expected);
  });

  it.each(["--image FILE", "--image FILE -", "-i FILE -i FILE -", "- -i FILE"])(
    "%s leave the prompt to standard input",
    async (words) => {
      await using home = await temporaryDirectory();
      await using workspace = await temporaryDirectory();
      const picture = join(workspace.path, "dot.gif");
      writeFileSync(picture, gif(3, 4));
      const context = testContext({ variables: { HOME: home.path } });
      context.stdin.end("what is it?");
      const given = words.replaceAll("FILE", picture).split(" ");
      await runCodexProgram(["exec", "-C", workspace.path, ...given], context);
      // What comes after the prompt and the images are read.
      expect(context.written().stderr).toContain("OPENAI_API_KEY is not set");
    },
  );
});

describe("brig-codex", () => {
  it.each([
    [["login"], /login/],
    [["exec", "fix", "it"], /put the prompt in quotes/],
    [["exec", "resume"], /no session given/],
    [["exec"], /there is no prompt\nhint: standard input is empty; pipe/],
    [["exec", "--frobnicate", "x"], /--frobnicate/],
    [["exec", "--color", "sometimes", "x"], /always, never, auto/],
  ])("%j is bad usage", async (argv, message) => {
    const context = testContext();
    context.stdin.end();
    expect(await runCodexProgram(argv, context)).toBe(2);
    expect(context.written().stderr).toMatch(message);
  });

  it("prints its help where nothing is asked, and never begins a conversation", async () => {
    const context = testContext();
    expect(await runCodexProgram([], context)).toBeNull();
    expect(context.written().stdout).toContain("Usage: brig-codex");
  });
});
