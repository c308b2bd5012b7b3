import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";
import { type LastingPlace, lastingPlace } from "./lasting.js";

/** What Claude Code reads of the answer of a hook. */
interface HookAnswer {
  permissionDecision: string;
  permissionDecisionReason: string;
  updatedInput?: { command: string } & Record<string, unknown>;
}

type Ended = { exitCode?: number; stdout: string; stderr: string };

/** A project in which brig is set up for Claude Code, and what Claude Code would do with it. */
export interface ClaudePlace extends LastingPlace {
  /** The settings that were written. */
  settings: string;
  /** The program for commands. */
  shell: string;
  /** The command of the hook, as it is in the settings. */
  hookCommand: string;
  /** A file of the machine that no sandbox sees. */
  outside: string;
  setUp(...args: string[]): Promise<Ended>;
  hook(
    command: unknown,
    more?: { tool?: string; cwd?: string; env?: Record<string, string> },
  ): Promise<Ended>;
  decision(command: string, cwd?: string): Promise<HookAnswer>;
  /** Runs a text as Claude Code runs a command: through the program, with its additions around it. */
  asTool(
    command: string,
    how?: { cwd?: string; directoryFile?: string; env?: Record<string, string> },
  ): Promise<Ended>;
  /** Runs a text by a shell of this machine, as a Claude Code does that knows of no such program. */
  onHost(command: string): Promise<Ended>;
}

export async function claudePlace(...args: string[]): Promise<ClaudePlace> {
  const place = await lastingPlace();
  const settings = join(place.workspace, ".claude/settings.local.json");
  const setUp = (...more: string[]) => place.run("setup", "claude", ...more);
  const { exitCode, stderr } = await setUp(...args);
  expect([exitCode, stderr]).toEqual([0, ""]);
  const { env, hooks } = JSON.parse(await readFile(settings, "utf8"));
  const shell: string = env.CLAUDE_CODE_SHELL_PREFIX;
  const hookCommand: string = hooks.PreToolUse.at(-1).hooks[0].command;
  const run = async (argv: string[], how: { cwd?: string; env?: Record<string, string>; input?: string }) =>
    await execa(argv[0] ?? "", argv.slice(1), {
      ...{ cwd: how.cwd ?? place.workspace, env: { CLAUDECODE: "1", ...how.env } },
      ...{ input: how.input ?? "", reject: false, stripFinalNewline: false },
    });
  const hook: ClaudePlace["hook"] = (command, { tool = "Bash", cwd = place.workspace, env = {} } = {}) => {
    const input = JSON.stringify({
      ...{ session_id: "one", hook_event_name: "PreToolUse", tool_name: tool, cwd },
      tool_input: { command, description: "as asked", run_in_background: false },
    });
    return run(["/bin/sh", "-c", hookCommand], {
      input,
      env: { CLAUDE_PROJECT_DIR: place.workspace, ...env },
    });
  };
  return {
    ...{ ...place, settings, shell, hookCommand, setUp, hook },
    outside: join(place.home, "../outside"),
    async decision(command, cwd = place.workspace) {
      const { exitCode, stdout, stderr } = await hook(command, { cwd });
      expect([exitCode, stderr]).toEqual([0, ""]);
      return JSON.parse(stdout).hookSpecificOutput;
    },
    asTool(command, { cwd, directoryFile = join(place.home, "../claude-0a1b-cwd"), env } = {}) {
      const quoted = `'${command.replaceAll("'", `'"'"'`)}'`;
      const text = `source /no/such/snapshot 2>/dev/null || true && eval ${quoted} < /dev/null && pwd -P >| ${directoryFile}`;
      return run([shell, text], { ...(cwd && { cwd }), ...(env && { env }) });
    },
    onHost: (command) => run(["/bin/bash", "-c", command], {}),
  };
}

/** A command that succeeds in the sandbox, and would leave a trace outside of it. */
export function marked({ outside }: Pick<ClaudePlace, "outside">, command: string): string {
  return `touch ${outside} 2>/dev/null; ${command}`;
}

export function expectNothingOutside({ outside }: Pick<ClaudePlace, "outside">): void {
  expect(existsSync(outside)).toBe(false);
}
