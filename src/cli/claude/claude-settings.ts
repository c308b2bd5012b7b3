import { BrigError } from "../../errors.js";
import { parseJson } from "../../lib/json/parse-json.js";
import type { ClaudeSetup } from "./written-setup.js";

/** What is written: a hook, and the program through which Claude Code runs commands. */
export interface ClaudeLines {
  hookCommand: string;
  shell: string;
}

type Table = Record<string, unknown>;

const PREFIX = "CLAUDE_CODE_SHELL_PREFIX";
/** Starting a sandbox may build an image first. */
const HOOK_SECONDS = 600;
/** Tools with which Claude Code runs commands. */
export const COMMAND_TOOLS = ["Bash", "Monitor", "PowerShell"];

/**
 * The settings with these lines, all others unchanged. Error: `config.invalid` for what is no settings file, or runs commands through another
 * program already.
 */
export function addLines(
  text: string,
  { lines, file }: { lines: ClaudeLines; file: string },
): { text: string; had: ClaudeSetup["had"]; warnings: string[] } {
  const settings = parseSettings(text, file);
  const env = tableIn(settings, "env", file);
  const hooks = tableIn(settings, "hooks", file);
  const groups = hooks.PreToolUse ?? [];
  if (!Array.isArray(groups)) throw notSettings(file, "hooks.PreToolUse is not a list");
  const prefix = env[PREFIX];
  if (prefix !== undefined && prefix !== lines.shell) throw otherPrefix(file, prefix);
  const ours = {
    matcher: COMMAND_TOOLS.join("|"),
    hooks: [{ type: "command", command: lines.hookCommand, timeout: HOOK_SECONDS, onFailure: "block" }],
  };
  const others = groups.map((group) => withoutHook(group, lines.hookCommand)).filter(isKept);
  const changed = {
    ...settings,
    env: { ...env, [PREFIX]: lines.shell },
    hooks: { ...hooks, PreToolUse: [...others, ours] },
  };
  const had = {
    ...{ env: settings.env !== undefined, hooks: settings.hooks !== undefined },
    preToolUse: hooks.PreToolUse !== undefined,
  };
  return { text: textOf(changed, text), had, warnings: warningsOf(settings) };
}

/** The settings without these lines, for a file that has changed since they were added. */
export function removeLines(
  text: string,
  { lines, file, had }: { lines: ClaudeLines; file: string; had: ClaudeSetup["had"] },
): string {
  const settings = parseSettings(text, file);
  const env = tableIn(settings, "env", file);
  const hooks = tableIn(settings, "hooks", file);
  const groups = Array.isArray(hooks.PreToolUse) ? hooks.PreToolUse : [];
  if (env[PREFIX] === lines.shell) delete env[PREFIX];
  const kept = groups.map((group) => withoutHook(group, lines.hookCommand)).filter(isKept);
  if (Array.isArray(hooks.PreToolUse)) hooks.PreToolUse = kept;
  if (kept.length === 0 && !had.preToolUse) delete hooks.PreToolUse;
  const changed: Table = { ...settings };
  put(changed, "env", { table: env, had: had.env });
  put(changed, "hooks", { table: hooks, had: had.hooks });
  return textOf(changed, text);
}

function put(settings: Table, key: string, { table, had }: { table: Table; had: boolean }): void {
  if (Object.keys(table).length === 0 && !had) delete settings[key];
  else if (settings[key] !== undefined) settings[key] = table;
}

/** Null for a group that had this hook alone. */
function withoutHook(group: unknown, command: string): unknown {
  if (!isTable(group) || !Array.isArray(group.hooks)) return group;
  const hooks = group.hooks.filter((hook) => !isTable(hook) || hook.command !== command);
  if (hooks.length === group.hooks.length) return group;
  return hooks.length === 0 ? null : { ...group, hooks };
}

function isKept(group: unknown): boolean {
  return group !== null;
}

function warningsOf(settings: Table): string[] {
  const sandbox = settings.sandbox;
  return [
    ...(settings.disableAllHooks === true
      ? [
          "disableAllHooks is true in this file: without the hook no sandbox is started, and Claude Code can run no command",
        ]
      : []),
    ...(isTable(sandbox) && sandbox.enabled === true
      ? ["sandbox.enabled is true in this file: Claude Code's own sandbox may keep brig from its sandboxes"]
      : []),
  ];
}

function parseSettings(text: string, file: string): Table {
  if (text.trim() === "") return {};
  const settings = parseJson(text.replace(/^\uFEFF/, ""));
  if (isTable(settings)) return settings;
  throw notSettings(file, settings === undefined ? "it is not JSON" : "it is not an object");
}

function tableIn(settings: Table, key: string, file: string): Table {
  const table = settings[key] ?? {};
  if (isTable(table)) return { ...table };
  throw notSettings(file, `${key} is not an object`);
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Indented as it was. */
function textOf(settings: Table, before: string): string {
  const indent = /^[ \t]+(?=")/m.exec(before)?.[0] ?? "  ";
  const end = before === "" || before.endsWith("\n") ? "\n" : "";
  return `${JSON.stringify(settings, null, indent)}${end}`;
}

function notSettings(file: string, what: string): BrigError {
  return new BrigError(`${file} is not what Claude Code reads: ${what}`, {
    code: "config.invalid",
    hint: "repair it, or move it away and run this again",
  });
}

function otherPrefix(file: string, prefix: unknown): BrigError {
  return new BrigError(`${file} sets ${PREFIX} to ${JSON.stringify(prefix)} already`, {
    code: "config.invalid",
    hint: "commands can only run through one such program: remove that line, and run this again",
  });
}
