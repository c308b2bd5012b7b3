import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import {
  array,
  boolean,
  nullable,
  object,
  readOrNull,
  type Shaped,
  string,
} from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { brigProgram } from "../../package-root.js";

const setupShape = object({
  /** Claude Code's file that was changed. */
  settings: string,
  /** The options of `brig up` for each project. */
  up: array(string),
  /** The file as it was; null if there was none. */
  before: nullable(string),
  /** Whether the folder of the file was there. */
  hadFolder: boolean,
  /** The file as it was written. */
  after: string,
  /** What the file already had of where brig's lines are. */
  had: object({ env: boolean, hooks: boolean, preToolUse: boolean }),
});

/** What `brig setup claude` keeps of one settings file, to obey it and to undo it. */
export type ClaudeSetup = Shaped<typeof setupShape>;

/** Where that is for this settings file: a directory with two programs, their options and the calls that wait. */
export function setupDirectory(brigHome: string, settings: string): string {
  return join(brigHome, "claude", createHash("sha256").update(settings).digest("hex").slice(0, 16));
}

export const hookProgram = (directory: string) => join(directory, "hook");
export const shellProgram = (directory: string) => join(directory, "shell");
export const policyFile = (directory: string) => join(directory, "policy.toml");
export const callsDirectory = (directory: string) => join(directory, "calls");
const setupFile = (directory: string) => join(directory, "setup.json");

/** Null where nothing is set up. Error: `config.invalid` for what cannot be read, which is nothing to go on with. */
export function readSetup(directory: string): ClaudeSetup | null {
  let text: string;
  try {
    text = readFileSync(setupFile(directory), "utf8");
  } catch {
    return null;
  }
  const setup = readOrNull(setupShape, parseJson(text));
  if (setup !== null) return setup;
  throw new BrigError(`${setupFile(directory)} cannot be read`, {
    code: "config.invalid",
    hint: "remove it, and run brig setup claude again",
  });
}

/** Written before the settings that name the programs: a hook that is missing would stop nothing in some releases of Claude Code. */
export async function writeSetup(
  directory: string,
  { setup, policy, brigHome }: { setup: ClaudeSetup; policy: string; brigHome: string },
): Promise<void> {
  await mkdir(callsDirectory(directory), { recursive: true, mode: 0o700 });
  await writeFile(policyFile(directory), policy, { mode: 0o600 });
  await writeFile(setupFile(directory), `${JSON.stringify(setup)}\n`, { mode: 0o600 });
  await writeFile(hookProgram(directory), hookText(directory, brigHome), { mode: 0o700 });
  await writeFile(shellProgram(directory), shellText(directory, brigHome), { mode: 0o700 });
}

export async function removeSetup(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}

/** Node must not take options out of the words that follow, so they come behind `--`. */
function startsBrig(command: string, directory: string): string {
  const [node, program] = brigProgram;
  return shellQuote([node, "--", program, command, "--setup", directory]);
}

const WRITTEN = "# Written by brig setup claude; brig setup claude --undo removes it.";

/** Whatever goes wrong ends with 2, the one status at which every release of Claude Code lets nothing run. */
function hookText(directory: string, brigHome: string): string {
  return `#!/bin/sh
${WRITTEN}
BRIG_HOME=${shellQuote([brigHome])}; export BRIG_HOME
unset NODE_OPTIONS
${startsBrig("claude-hook", directory)} "$@" || { echo "brig: the hook has failed, so the command does not run" >&2; exit 2; }
`;
}

/**
 * Claude Code runs every command through this program, hooks and MCP servers too. Those two belong to the person and stay on the machine: they are
 * given the directory of the project in a variable, which commands of the model are not, and have not the ending of such a command.
 */
function shellText(directory: string, brigHome: string): string {
  const hook = hookProgram(directory);
  return `#!/bin/sh
${WRITTEN}
if [ -n "\${CLAUDE_PROJECT_DIR-}" ] && [ $# -eq 1 ]; then
  case $1 in
    ${shellQuote([hookCommand(hook)])}) exec ${shellQuote([hook])} --guarded ;;
    *'pwd -P >|'*) ;;
    *) if [ -x /bin/bash ]; then exec /bin/bash -c "$1"; else exec /bin/sh -c "$1"; fi ;;
  esac
fi
BRIG_HOME=${shellQuote([brigHome])}; export BRIG_HOME
unset NODE_OPTIONS
exec ${startsBrig("claude-shell", directory)} -- "$@"
`;
}

/** As it is in the settings, where a shell reads it. */
export function hookCommand(hook: string): string {
  return shellQuote([hook]);
}
