import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const play = String.raw`steps:
  - text: I look.
    calls:
      - exec_command:
          cmd: "seq 1 20; printf '\\033[31mred\\033[0m\\033]0;evil\\007\\n'; while [ ! -e go ]; do sleep 0.1; done; echo the end"
          yield_time_ms: 30000
  - text: "All \e[32mdone\e[0m\u202e."
`;

let workspace: string;
let args: string[];
let environment: Record<string, string>;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  workspace = join(directory.path, "work");
  await mkdir(workspace);
  const script = join(directory.path, "play.yaml");
  await writeFile(script, play);
  args = [
    "run",
    ...(testRuntime === undefined ? [] : ["--runtime", testRuntime]),
    "--script",
    script,
    "look",
  ];
  environment = { BRIG_HOME: directory.path, CODEX_HOME: directory.path, NO_COLOR: "" };
});

async function open(env: Record<string, string> = {}): Promise<Terminal> {
  const terminal = await Terminal.open(args, { cwd: workspace, env: { ...environment, ...env } });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  return terminal;
}

describe("brig run", () => {
  it("shows on a terminal the end of what a command prints while it runs, and keeps that when it is done", async () => {
    const terminal = await open();
    await terminal.waitForScreen(
      /● I look\.\n[\s\S]*\$ seq 1 20[\s\S]*⋮ 13 lines above\n {2}│ 14\n[\s\S]*│ 20\n {2}│ red\n {2}… \d+ s\n\n◦ working \d+ s · ctrl-C interrupts/,
    );
    await writeFile(join(workspace, "go"), "");
    expect((await terminal.end()).exitStatus).toBe(0);
    const seen = terminal.screen.history.join("\n");
    expect(seen).toMatch(
      /⋮ 14 lines above\n {2}│ 15\n[\s\S]*│ red\n {2}│ the end\n {2}✓ exit 0 · .*\n1 tool call/,
    );
    expect(seen.match(/\$ seq 1 20/g)).toHaveLength(1);
    expect(seen).not.toMatch(/… \d+ s|⋮ 13 lines|working/);
    expect(seen.match(/All done/g)).toHaveLength(1);
    expect(terminal.deeds).toEqual([]);
  });

  it("prints no control sequence on a terminal of a machine", async () => {
    await writeFile(join(workspace, "go"), "");
    const terminal = await open({ CI: "1" });
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown).toContain("$ seq 1 20");
    expect(terminal.shown).toContain("  │ red");
    expect(terminal.shown).not.toContain("\x1b");
  });

  it("prints none into a pipe either, and leaves every character of the result that is text", async () => {
    await writeFile(join(workspace, "go"), "");
    const { exitCode, stderr, stdout } = await brigHere(args, { cwd: workspace, env: environment });
    expect(exitCode).toBe(0);
    expect(stderr).toContain("  │ red");
    expect(stderr).not.toContain("\x1b");
    expect(stdout).toBe("All done\u202e.\n");
  });
});
