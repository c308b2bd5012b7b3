import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { claudePlace, expectNothingOutside, marked } from "../support/claude-place.js";
import { lastingPlace } from "../support/lasting.js";

describe("the settings that brig setup claude writes", () => {
  const theirs = `{
    "permissions": { "deny": ["Bash(curl:*)"] },
    "env": { "FOO": "1" },
    "hooks": {
        "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "their-hook" }] }],
        "Stop": [{ "hooks": [{ "type": "command", "command": "other" }] }]
    }
}`;

  async function withSettings(text: string) {
    const place = await lastingPlace();
    const file = join(place.workspace, ".claude/settings.local.json");
    await mkdir(dirname(file));
    await writeFile(file, text);
    return { place, file, setUp: (...args: string[]) => place.run("setup", "claude", ...args) };
  }

  it("keep all that was there, and are undone to the byte", async () => {
    const { file, setUp } = await withSettings(theirs);
    const { exitCode, stdout, stderr } = await setUp();
    expect([exitCode, stderr]).toEqual([0, ""]);
    for (const words of [file, "hooks.PreToolUse", "env.CLAUDE_CODE_SHELL_PREFIX", "--undo"])
      expect(stdout).toContain(words);
    const written = await readFile(file, "utf8");
    const [before, after] = [JSON.parse(theirs), JSON.parse(written)];
    expect(after.permissions).toEqual(before.permissions);
    expect(after.env.FOO).toBe("1");
    expect(after.hooks.Stop).toEqual(before.hooks.Stop);
    expect(after.hooks.PreToolUse.slice(0, 1)).toEqual(before.hooks.PreToolUse);
    expect(after.hooks.PreToolUse[1]).toMatchObject({ hooks: [{ onFailure: "block" }] });
    expect(written).toContain('\n    "permissions"');
    expect((await setUp("-s", "read-only")).exitCode).toBe(0);
    expect(await readFile(file, "utf8")).toBe(written);
    expect((await setUp("--undo")).stdout).toContain(`restored ${file}`);
    expect(await readFile(file, "utf8")).toBe(theirs);
  });

  it("lose brig's lines alone where somebody has changed the file since", async () => {
    const { file, setUp } = await withSettings('{ "model": "opus" }\n');
    await setUp();
    const changed = JSON.parse(await readFile(file, "utf8"));
    changed.hooks.PreToolUse[0].hooks.push({ type: "command", command: "their-hook" });
    await writeFile(file, JSON.stringify({ ...changed, model: "haiku" }));
    expect((await setUp("--undo")).stdout).toContain("took brig's lines out of");
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({
      model: "haiku",
      hooks: {
        PreToolUse: [
          { matcher: "Bash|Monitor|PowerShell", hooks: [{ type: "command", command: "their-hook" }] },
        ],
      },
    });
  });

  it("are gone after --undo where there were none, with all that brig kept of them", async () => {
    const place = await claudePlace();
    const { stdout } = await place.setUp("--undo");
    expect(stdout).toContain(`removed ${place.settings}`);
    expect(await readdir(place.workspace)).toEqual([]);
    expect(await readdir(join(place.home, "claude"))).toEqual([]);
    expect((await place.setUp("--undo")).stdout).toContain("nothing to undo");
  });

  it("are only printed with --print", async () => {
    const { file, place, setUp } = await withSettings(theirs);
    const { stdout } = await setUp("--print");
    expect(JSON.parse(stdout).env.CLAUDE_CODE_SHELL_PREFIX).toContain(place.home);
    expect(await readFile(file, "utf8")).toBe(theirs);
    expect(existsSync(join(place.home, "claude"))).toBe(false);
  });

  it("may be those of the user, or those that a project shares", async () => {
    const place = await lastingPlace();
    const config = join(place.home, "../claude-home");
    const env = { CLAUDE_CONFIG_DIR: config };
    const { stdout } = await place.start(["setup", "claude", "--scope", "user"], { env });
    expect(stdout).toContain(`wrote ${join(config, "settings.json")}`);
    const shared = await place.run("setup", "claude", "--scope", "project");
    expect(shared.stdout).toContain(`wrote ${join(place.workspace, ".claude/settings.json")}`);
    expect(shared.stdout).toContain("do not commit it");
    await place.start(["setup", "claude", "--scope", "user", "--undo"], { env });
    expect(existsSync(config)).toBe(false);
  });

  it.each([
    ["{", "it is not JSON"],
    ["[]", "it is not an object"],
    ['{ "hooks": { "PreToolUse": {} } }', "hooks.PreToolUse is not a list"],
    ['{ "env": { "CLAUDE_CODE_SHELL_PREFIX": "/their/own" } }', "/their/own"],
  ])("are not made of %s", async (text, reason) => {
    const { file, setUp } = await withSettings(text);
    const { exitCode, stderr } = await setUp();
    expect(exitCode).toBe(2);
    expect(stderr).toContain(reason);
    expect(await readFile(file, "utf8")).toBe(text);
  });

  it("come with a warning where hooks are off", async () => {
    const { setUp } = await withSettings('{ "disableAllHooks": true }');
    expect((await setUp()).stderr).toContain("disableAllHooks is true");
  });
});

describe("the hook for Claude Code", () => {
  it("sends commands into one sandbox of the project, with its other input, and finds the sandbox again", async () => {
    const place = await claudePlace("--network", "none");
    const first = await place.decision(marked(place, "echo made > made; hostname; pwd"));
    expect(first.permissionDecision).toBe("allow");
    expect(first.updatedInput).toMatchObject({ description: "as asked", run_in_background: false });
    expect(await place.onHost(first.updatedInput?.command ?? "")).toMatchObject({
      ...{ exitCode: 0, stdout: `brig\n${place.workspace}\n`, stderr: "" },
    });
    expect(await readFile(join(place.workspace, "made"), "utf8")).toBe("made\n");
    const second = await place.decision("exit 7");
    expect((await place.onHost(second.updatedInput?.command ?? "")).exitCode).toBe(7);
    const listed = JSON.parse((await place.run("ps", "--json")).stdout);
    expect(listed).toMatchObject([{ network: "none", workspace: place.workspace, confirmed: true }]);
    expectNothingOutside(place);
  });

  it("starts one sandbox for calls at the same time, and another one after it was stopped", async () => {
    const place = await claudePlace();
    const decisions = await Promise.all(["a", "b", "c"].map((name) => place.decision(`touch ${name}`)));
    expect(decisions.map(({ permissionDecision }) => permissionDecision)).toEqual([
      "allow",
      "allow",
      "allow",
    ]);
    const [{ name, id }] = JSON.parse((await place.run("ps", "--json")).stdout);
    expect((await place.run("stop", name)).exitCode).toBe(0);
    const refused = await place.onHost(decisions[0]?.updatedInput?.command ?? "");
    expect(refused.exitCode).toBe(125);
    expect(refused.stderr).toContain("does not run any more: it was stopped");
    expect((await place.decision("true")).permissionDecision).toBe("allow");
    const [again, ...more] = JSON.parse((await place.run("ps", "--json")).stdout);
    expect([again.name, more]).toEqual([name, []]);
    expect(again.id).not.toBe(id);
  });

  it.each([
    ["a here-document and quotes", `cat <<'E'\nit's "one" $HOME \\\nE`, `it's "one" $HOME \\\n`],
    ["an end in a comment", "echo one # two", "one\n"],
    ["several lines", "echo one\n\necho two\n", "one\ntwo\n"],
    ["a command in the background", "sleep 1000 & echo on", "on\n"],
    ["two hundred kilobytes", `: ${"x".repeat(200_000)}\necho long`, "long\n"],
    ["input that never comes", "cat; echo over", "over\n"],
  ])("passes on %s, both ways", async (_, command, printed) => {
    const place = await claudePlace();
    const { updatedInput } = await place.decision(marked(place, command));
    const given = updatedInput?.command ?? "";
    expect(given.length).toBeLessThan(1000);
    expect(await place.onHost(given)).toMatchObject({ exitCode: 0, stdout: printed, stderr: "" });
    const again = await place.decision(marked(place, command));
    expect(await place.asTool(again.updatedInput?.command ?? "")).toMatchObject({
      exitCode: 0,
      stdout: printed,
    });
    expectNothingOutside(place);
  });

  it("denies what no shell of a sandbox can run, or what is elsewhere", async () => {
    const place = await claudePlace();
    const denials = [
      [{ command: "echo \0" }, "NUL"],
      [{ command: "x".repeat(1024 * 1024 + 1) }, "longer than"],
      [{ command: 7 }, "does not understand"],
      [{ command: "" }, "without one"],
      [{ command: "Get-Item", tool: "PowerShell" }, "commands of bash only"],
      [{ command: "ls", cwd: "/" }, "is not in it"],
    ] as const;
    for (const [{ command, ...more }, reason] of denials) {
      const { exitCode, stdout } = await place.hook(command, more);
      expect(exitCode).toBe(0);
      const { permissionDecision, permissionDecisionReason } = JSON.parse(stdout).hookSpecificOutput;
      expect([permissionDecision, permissionDecisionReason]).toEqual([
        "deny",
        expect.stringContaining(reason),
      ]);
    }
  });

  it("denies commands while no container engine answers", async () => {
    const place = await claudePlace();
    const { stdout } = await place.hook("ls", { env: { DOCKER_HOST: "unix:///no/such.sock" } });
    const { permissionDecision, permissionDecisionReason } = JSON.parse(stdout).hookSpecificOutput;
    expect(permissionDecision).toBe("deny");
    expect(permissionDecisionReason).toContain("/no/such.sock");
  });

  it("needs no PATH, and blocks by its exit status where brig is gone or its options are unreadable", async () => {
    const place = await claudePlace();
    expect((await place.hook("true", { env: { PATH: "" } })).stdout).toContain('"allow"');
    const directory = dirname(place.shell);
    const script = await readFile(join(directory, "hook"), "utf8");
    await writeFile(join(directory, "hook"), script.replace("main.js", "gone.js"));
    expect((await place.hook("true")).exitCode).toBe(2);
    await writeFile(join(directory, "hook"), script);
    await writeFile(join(directory, "setup.json"), "{");
    expect((await place.hook("true")).stdout).toContain('"deny"');
  });
});

describe("the program for Claude Code's commands", () => {
  it("runs a command in the sandbox although the hook's change of it was dropped", async () => {
    const place = await claudePlace();
    const command = marked(place, "hostname; exit 3");
    await place.decision(command);
    expect(await place.asTool(command)).toMatchObject({ exitCode: 3, stdout: "brig\n", stderr: "" });
    expectNothingOutside(place);
  });

  it("runs nothing where no hook has started a sandbox, whatever the command says", async () => {
    const place = await claudePlace();
    const shapes = [
      marked(place, "true"),
      `--call=${"0".repeat(32)}`,
      `true' && touch ${place.outside} && echo '`,
      `$(touch ${place.outside})`,
    ];
    for (const command of shapes) {
      const { exitCode, stdout, stderr } = await place.asTool(command);
      expect([exitCode, stdout]).toEqual([125, ""]);
      expect(stderr).toContain("so the command was not run");
    }
    const inherited = { CLAUDE_PROJECT_DIR: place.workspace };
    expect((await place.asTool(marked(place, "true"), { env: inherited })).exitCode).toBe(125);
    expectNothingOutside(place);
  });

  it("runs nothing where brig is gone, or its own program", async () => {
    const place = await claudePlace();
    await place.decision("true");
    const script = await readFile(place.shell, "utf8");
    await writeFile(place.shell, script.replace("main.js", "gone.js"));
    expect((await place.asTool(marked(place, "true"))).exitCode).not.toBe(0);
    await writeFile(place.shell, script.replace(/'?\S*node'? --/, "/no/such/node --"));
    expect((await place.asTool(marked(place, "true"))).exitCode).not.toBe(0);
    await rm(place.shell);
    expect((await place.asTool(marked(place, "true"))).exitCode).not.toBe(0);
    expectNothingOutside(place);
  });

  it("makes a call that was allowed once", async () => {
    const place = await claudePlace();
    const { updatedInput } = await place.decision("echo once");
    const given = updatedInput?.command ?? "";
    expect((await place.onHost(given)).stdout).toBe("once\n");
    const again = await place.onHost(given);
    expect([again.exitCode, again.stdout]).toEqual([125, ""]);
    expect(again.stderr).toContain("made already");
  });

  it("tells Claude Code where the shell is, if both see that directory, and writes to no other file", async () => {
    const place = await claudePlace();
    await place.decision("true");
    const directoryFile = join(place.home, "../claude-77-cwd");
    await place.asTool("mkdir sub && cd sub", { directoryFile });
    expect(await readFile(directoryFile, "utf8")).toBe(`${place.workspace}/sub\n`);
    const inSub = await place.asTool("pwd", { directoryFile, cwd: join(place.workspace, "sub") });
    expect(inSub.stdout).toBe(`${place.workspace}/sub\n`);
    await place.asTool("cd /tmp", { directoryFile });
    expect(await readFile(directoryFile, "utf8")).toBe(`${place.workspace}/sub\n`);
    await place.asTool("mkdir $'a\\nb' && cd $'a\\nb'", { directoryFile });
    expect(await readFile(directoryFile, "utf8")).toBe(`${place.workspace}/sub\n`);
    await writeFile(place.outside, "theirs");
    await place.asTool("true", { directoryFile: place.outside });
    const link = join(place.home, "../claude-88-cwd");
    await symlink(place.outside, link);
    await place.asTool("true", { directoryFile: link });
    expect(await readFile(place.outside, "utf8")).toBe("theirs");
  });

  it("leaves hooks and servers of the person on this machine", async () => {
    const place = await claudePlace();
    const env = { CLAUDE_PROJECT_DIR: place.workspace };
    const { execa } = await import("execa");
    const theirs = await execa(place.shell, [`touch ${place.outside}; cat`], { env, input: "of the event" });
    expect(theirs.stdout).toBe("of the event");
    expect(existsSync(place.outside)).toBe(true);
    const input = JSON.stringify({ tool_name: "Bash", cwd: place.workspace, tool_input: { command: "ls" } });
    const ours = JSON.parse((await execa(place.shell, [place.hookCommand], { env, input })).stdout);
    expect(ours.hookSpecificOutput.permissionDecision).toBe("allow");
    expect(ours.hookSpecificOutput).not.toHaveProperty("updatedInput");
  });
});

it("no command can change what Claude Code obeys, be it there or not", async () => {
  const place = await claudePlace();
  await place.decision("true");
  const before = await readFile(place.settings, "utf8");
  const attempts = [
    "echo {} > .claude/settings.local.json",
    "rm -rf .claude",
    "mv .claude other",
    "touch .claude/settings.json",
    "echo {} > .mcp.json",
    "echo {} > .mcp.json/x",
  ];
  for (const attempt of attempts) expect((await place.asTool(attempt)).exitCode, attempt).not.toBe(0);
  expect(await readFile(place.settings, "utf8")).toBe(before);
  expect(await readdir(join(place.workspace, ".claude"))).toEqual(["settings.local.json"]);
});
