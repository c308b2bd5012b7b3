import type { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { runCodexProgram } from "../../../src/cli/codex/codex-program.js";
import type { CommandEntry } from "../../../src/cli/command-entry.js";
import { commands } from "../../../src/cli/command-list.js";
import { completeWords } from "../../../src/cli/completion/complete-words.js";
import { type HostProcess, openHost } from "../../../src/cli/host.js";
import { programOf, runProgram } from "../../../src/cli/program.js";
import { runInProcess } from "../../../src/cli/run-in-process.js";
import { manPage } from "../../../src/cli/usage/man-page.js";
import { isColoured } from "../../../src/command/render.js";
import { BrigError } from "../../../src/errors.js";
import { readVersion } from "../../../src/version.js";
import { type TestContextOptions, testContext } from "../../support/cli-context.js";
import { NotedProcess } from "../../support/noted-process.js";

const failing: CommandEntry = {
  name: "work",
  summary: "do some work",
  load: async () => (command) => {
    command
      .option("--json")
      .option("--level <n>")
      .action(() => {
        throw new BrigError("the work failed", { code: "model.failed", hint: "try again" });
      });
  },
};
const passing: CommandEntry = { ...failing, name: "pass", passesExitCodeOn: true };
const telling: CommandEntry = { ...failing, name: "tell", printsEvents: true };
const unloadable: CommandEntry = {
  name: "heavy",
  summary: "never loaded",
  load: () => Promise.reject(new Error("was loaded")),
};
const nested: CommandEntry = {
  name: "image",
  summary: "has commands of its own",
  load: async () => (command) => {
    command.action(() => undefined);
    command
      .command("ls")
      .alias("list")
      .option("--json")
      .action(() => {
        throw new BrigError("no engine", { code: "engine.unreachable" });
      });
  },
};

async function run(argv: string[], options: TestContextOptions = {}) {
  const context = testContext(options);
  const status = await runProgram(argv, {
    context,
    commands: [failing, passing, telling, unloadable, nested],
  });
  return { status, ...context.written() };
}

describe("runProgram", () => {
  it.each([
    [["work"], 2],
    [["pass"], 125],
    [["--help"], 2],
  ])("%j says which variable of the environment cannot be used", async (argv, status) => {
    const noted = new NotedProcess();
    Object.assign(noted.env, { HOME: ".", BRIG_TRACE: "1" });
    const host = openHost(noted as unknown as HostProcess);
    const commands = [failing, passing];
    expect(await runInProcess(host, () => runProgram(argv, { context: host, commands }))).toBe(status);
    expect(await runInProcess(host, () => runCodexProgram(["exec", "hi"], host))).toBe(2);
    noted.stderr.end();
    expect(await text(noted.stderr as PassThrough)).toMatch(
      /^(?:brig: HOME is "\."[^\n]*\nhint: unset HOME[^\n]*\n){2}$/,
    );
  });

  it("prints the help without loading any command", async () => {
    const { status, stdout, stderr } = await run([]);
    expect(status).toBeNull();
    expect(stdout).toContain("do some work");
    expect(stdout).toContain("never loaded");
    expect(stderr).toBe("");
    expect((await run(["--help"])).stdout).toBe(stdout);
  });

  it("has the commands of brig in the help under headings, and none that is for brig itself", async () => {
    const context = testContext();
    await runProgram(["--help"], { context, commands });
    const { stdout } = context.written();
    const headings = [...stdout.matchAll(/^(\S.*):$/gm)].map(([, heading]) => heading);
    expect(headings.length).toBeGreaterThanOrEqual(5);
    const shown = commands.filter(({ name }) => new RegExp(`^ {2}${name}\\b`, "m").test(stdout));
    expect(commands.filter((entry) => !shown.includes(entry)).map(({ name }) => name)).toEqual([
      "complete",
      "man",
      "claude-hook",
      "claude-shell",
      "owner",
    ]);
    expect(shown.filter(({ group }) => group === undefined)).toEqual([]);
  });

  it.each([
    ["TERM is dumb", { TERM: "dumb" }],
    ["CI is set", { TERM: "xterm", CI: "1" }],
  ])("says at a terminal why no conversation begins: %s", async (why, variables) => {
    const { status, stdout, stderr } = await run([], { variables, isTerminal: true });
    expect(status).toBeNull();
    expect(stdout).toContain("Commands:");
    expect(stderr).toContain(`because ${why};`);
  });

  it.each(["-V", "--version"])("prints the version on %s", async (flag) => {
    expect(await run([flag])).toEqual({ status: null, stdout: `${readVersion()}\n`, stderr: "" });
  });

  it("loads the command that is asked for, and only that", async () => {
    expect((await run(["work", "--help"])).stdout).toContain("--level <n>");
    expect((await run(["help", "work"])).stdout).toContain("--level <n>");
    expect((await run(["heavy"])).stderr).toContain("was loaded");
  });

  it.each([
    [
      "an unknown command",
      ["wrok"],
      "brig: unknown command 'wrok'\n(Did you mean work?)\nhint: see: brig --help\n",
    ],
    [
      "an unknown option",
      ["work", "--lvel"],
      "brig: unknown option '--lvel'\n(Did you mean --level?)\nhint: see: brig work --help\n",
    ],
    [
      "a missing value",
      ["work", "--level"],
      "brig: option '--level <n>' argument missing\nhint: see: brig work --help\n",
    ],
    ["an argument too many", ["work", "x"], "hint: see: brig work --help\n"],
    [
      "a slip below a command",
      ["image", "lss"],
      "brig: unknown command 'lss'\n(Did you mean ls?)\nhint: see: brig image --help\n",
    ],
    ["an unknown option below a command", ["image", "ls", "--jsom"], "hint: see: brig image ls --help\n"],
    ["an argument too many below a command", ["image", "list", "x"], "brig: too many arguments for 'ls'."],
    ["help for what is no command", ["help", "wrok"], "brig: unknown command 'wrok'\n(Did you mean work?)\n"],
  ])("answers %s with 2 and a next step", async (_name, argv, complaint) => {
    const { status, stdout, stderr } = await run(argv);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(complaint);
  });

  it("reports what a command could not do on stderr", async () => {
    expect(await run(["work"])).toEqual({
      status: 1,
      stdout: "",
      stderr: "brig: the work failed\nhint: try again\n",
    });
  });

  it("reports it as JSON on stdout with --json", async () => {
    const { status, stdout, stderr } = await run(["work", "--json"]);
    expect({ status, stderr }).toEqual({ status: 1, stderr: "" });
    expect(JSON.parse(stdout).error).toEqual({
      code: "model.failed",
      message: "the work failed",
      hint: "try again",
    });
    expect(JSON.parse((await run(["image", "ls", "--json"])).stdout).error.code).toBe("engine.unreachable");
  });

  it.each([
    ["what it could not do", ["--json"], 1, "the work failed", "model.failed", "try again"],
    [
      "an option that there is not",
      ["--json", "--bogus"],
      2,
      "unknown option '--bogus'",
      "usage.invalid",
      "see: brig tell --help",
    ],
  ])(
    "reports %s in one line where a command prints events, and to people too",
    async (_, flags, status, message, code, hint) => {
      const done = await run(["tell", ...flags]);
      expect(done.status).toBe(status);
      expect(done.stdout.trimEnd()).not.toContain("\n");
      expect(JSON.parse(done.stdout)).toEqual({ type: "error", message, code, hint });
      expect(done.stderr).toContain(`brig: ${message}\nhint: ${hint}\n`);
    },
  );

  it("shows causes with BRIG_DEBUG", async () => {
    expect((await run(["work"], { variables: { BRIG_DEBUG: "1" } })).stderr).toMatch(/\n +at /);
  });

  it("exits with 125 for every failure of a command that passes an exit code on", async () => {
    expect((await run(["pass"])).status).toBe(125);
    expect((await run(["pass", "--nonsense"])).status).toBe(125);
  });

  it("takes every error after an interruption for its consequence", async () => {
    const reason = new BrigError("interrupted by SIGTERM", { code: "aborted" });
    const interruption = { exitStatus: 143, isQuiet: false, reason };
    const expected = { status: 143, stdout: "", stderr: "brig: interrupted by SIGTERM\n" };
    expect(await run(["work"], { interruption })).toEqual(expected);
    expect(await run(["pass"], { interruption })).toEqual(expected);
    const quiet = { ...interruption, exitStatus: 141, isQuiet: true };
    expect(await run(["work"], { interruption: quiet })).toEqual({ status: 141, stdout: "", stderr: "" });
  });
});

describe("the options of every command", () => {
  const speaking: CommandEntry = {
    name: "speak",
    summary: "say something everywhere",
    load: async () => (command, context) => {
      const speak = () => {
        context.stdout.write("result\n");
        context.stderr.write("remark\n");
        context.essentialStderr.write("question\n");
        context.stdout.write(`${isColoured(context.stdout, context.environment)}\n`);
      };
      command.argument("[words...]").passThroughOptions().action(speak);
      command.command("low").action(() => {
        speak();
        throw new BrigError("it failed", { code: "model.failed" });
      });
    },
  };

  async function speak(argv: string[], options: TestContextOptions = {}) {
    const context = testContext(options);
    const status = await runProgram(argv, { context, commands: [speaking] });
    return { status, ...context.written() };
  }

  it.each([
    [["-q", "speak"]],
    [["--quiet", "speak"]],
    [["speak", "-q"]],
    [["--color", "never", "-q", "speak", "--color=auto"]],
  ])("%j has no remarks, but the result and questions", async (argv) => {
    const said = await speak(argv);
    expect(said).toEqual({ status: null, stdout: "result\nfalse\n", stderr: "question\n" });
  });

  it("leave errors to be seen, also below a command", async () => {
    const { status, stderr } = await speak(["speak", "low", "--quiet"]);
    expect([status, stderr]).toEqual([1, "question\nbrig: it failed\n"]);
    expect((await speak(["speak", "low"])).stderr).toBe("remark\nquestion\nbrig: it failed\n");
    expect((await speak(["-q", "spaek"])).stderr).toContain("unknown command 'spaek'");
  });

  it("are words of the command's own behind its first argument", async () => {
    expect((await speak(["speak", "echo", "-q"])).stderr).toBe("remark\nquestion\n");
  });

  it.each([
    [["speak"], { isTerminal: true }, true],
    [["speak"], { isTerminal: false }, false],
    [["speak"], { isTerminal: true, variables: { NO_COLOR: "1" } }, false],
    [["speak"], { isTerminal: true, variables: { CI: "1" } }, false],
    [["speak"], { isTerminal: true, variables: { FORCE_COLOR: "0" } }, false],
    [["speak"], { variables: { FORCE_COLOR: "1" } }, true],
    [["speak"], { variables: { FORCE_COLOR: "1", NO_COLOR: "1" } }, false],
    [["speak", "--color", "always"], { variables: { NO_COLOR: "1" } }, true],
    [["--color=always", "speak"], {}, true],
    [["--color", "always", "speak", "--color", "never"], { isTerminal: true }, false],
    [["speak", "--color", "never"], { isTerminal: true, variables: { FORCE_COLOR: "1" } }, false],
  ] as const)("%j with %j: colours %s", async (argv, options, isColoured) => {
    expect((await speak([...argv], options)).stdout).toBe(`result\n${isColoured}\n`);
  });

  it("complete at every place, with their values, and are once in the manual page", async () => {
    const context = testContext();
    const program = await programOf(["speak"], { context, commands: [speaking] });
    const nothing = { sandboxes: () => [], sessions: async () => [] };
    const words = async (...typed: string[]) =>
      (await completeWords(program, typed, nothing)).words.map(({ word }) => word);
    expect(await words("--q")).toEqual(["--quiet"]);
    expect(await words("-q", "spe")).toEqual(["speak"]);
    expect(await words("-q", "speak", "low", "--col")).toEqual(["--color"]);
    expect(await words("speak", "--color", "a")).toEqual(["auto", "always"]);
    expect(await words("speak", "--color=n")).toEqual(["never"]);
    const page = manPage(program, "1.0");
    expect(page.match(/\\-\\-quiet/g)).toHaveLength(1);
    expect(page).toContain('.SH "OPTIONS OF EVERY COMMAND"');
  });

  it("are in the help of the program and of each command, and a wrong word is refused", async () => {
    for (const argv of [["--help"], ["speak", "--help"], ["speak", "low", "--help"]]) {
      const { stdout } = await speak(argv);
      expect(stdout).toMatch(/^Options of every command:\n {2}-q, --quiet .*\n[\s\S]* {2}--color <when>/m);
    }
    const { status, stderr } = await speak(["speak", "--color", "pink"]);
    expect(status).toBe(2);
    expect(stderr).toContain("pink");
  });
});

describe("a prompt in place of a command", () => {
  /** What `run` is given. */
  async function begun(argv: string[], options: TestContextOptions = {}) {
    const seen: unknown[] = [];
    const run: CommandEntry = {
      name: "run",
      summary: "run",
      load: async () => (command) => {
        command
          .argument("[prompt]")
          .option("-m, --model <name>")
          .option("--converse")
          .action((prompt: string | undefined, flags: object) => {
            seen.push({ prompt, ...flags });
          });
      },
    };
    const context = testContext({ isTerminal: true, variables: { TERM: "xterm" }, ...options });
    const status = await runProgram(argv, { context, commands: [run, failing] });
    return { status, seen, ...context.written() };
  }

  it.each([
    [["fix it"], { prompt: "fix it" }],
    [["hello"], { prompt: "hello" }],
    [["work on the tests"], { prompt: "work on the tests" }],
    [["-m", "x"], { model: "x" }],
    [["-m", "x", "fix it"], { model: "x", prompt: "fix it" }],
    [[], {}],
  ])("begins a conversation at a terminal: %j", async (argv, expected) => {
    const { seen, status } = await begun(argv);
    expect(status).toBeNull();
    expect(seen).toEqual([{ prompt: undefined, converse: true, ...expected }]);
  });

  it("takes a word that is nearly a command for a slip", async () => {
    const { seen, status, stderr } = await begun(["wrok"]);
    expect(seen).toEqual([]);
    expect(status).toBe(2);
    expect(stderr).toContain("(Did you mean work?)");
  });

  it("runs a command that is one", async () => {
    expect((await begun(["work"])).stderr).toContain("the work failed");
  });

  it("without a terminal says which command takes it", async () => {
    const { seen, status, stderr } = await begun(["fix it"], { isTerminal: false });
    expect(seen).toEqual([]);
    expect(status).toBe(2);
    expect(stderr).toBe("brig: unknown command 'fix it'\nhint: to run a prompt: brig run PROMPT\n");
  });
});

describe("the commands", () => {
  it.each(commands.map((entry) => [entry.name, entry] as const))(
    "%s can be loaded and explains itself",
    async (name, entry) => {
      const context = testContext();
      expect(await runProgram([name, "--help"], { context, commands: [entry] })).toBeNull();
      expect(context.written().stdout).toMatch(new RegExp(`^Usage: brig ${name} `));
    },
  );
});
