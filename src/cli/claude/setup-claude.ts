import { existsSync, realpathSync } from "node:fs";
import { rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Command, Option } from "commander";
import type { CliContext } from "../../command/index.js";
import { say, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { replaceFile } from "../../lib/files/replace-file.js";
import { addLines, type ClaudeLines, removeLines } from "./claude-settings.js";
import {
  type ClaudeSetup,
  hookCommand,
  hookProgram,
  policyFile,
  readSetup,
  removeSetup,
  setupDirectory,
  shellProgram,
  writeSetup,
} from "./written-setup.js";

const SCOPES = ["local", "project", "user"] as const;
const MODES = ["workspace-write", "read-only"] as const;
const MAX_FILE_BYTES = 1024 * 1024;

interface SetupClaudeFlags {
  scope: (typeof SCOPES)[number];
  cd?: string;
  sandbox: (typeof MODES)[number];
  network?: string;
  containerImage?: string;
  memory?: string;
  cpus?: string;
  idle: string;
  print?: boolean;
  undo?: boolean;
}

export function defineSetupClaude(command: Command, context: CliContext): void {
  command
    .description("make Claude Code run its commands in brig: writes to its settings")
    .addOption(
      new Option("--scope <scope>", "whose settings: local is yours for this project, user for all of them")
        .choices(SCOPES)
        .default("local"),
    )
    .option("-C, --cd <dir>", "the project (default: the current directory)")
    .addOption(
      new Option("-s, --sandbox <mode>", "what commands may do with the project")
        .choices(MODES)
        .default("workspace-write"),
    )
    .option("--network <setting>", "none (default), full or allowlist:HOST,…")
    .option("--container-image <image>", "the image that commands run in (default: brig/base)")
    .option("--memory <size>", "the memory of a sandbox, such as 4g")
    .option("--cpus <number>", "the processors of a sandbox")
    .option("--idle <time>", "end a sandbox in which no command has run for so long", "12h")
    .option("--print", "print the file as it would be, and write nothing")
    .option("--undo", "take out again what this command has written")
    .addHelpText("after", HELP)
    .action(async (flags: SetupClaudeFlags) => {
      const place = placeOf(flags, context);
      if (flags.undo === true) return await undo(place, flags, context);
      await setUp(place, flags, context);
    });
}

const HELP = `
Each project gets one sandbox of brig up, which the hook starts before the first command and finds again later: brig ps lists it. Commands do
not run on this machine, even if the hook or brig fails. Reading and editing files stays with Claude Code itself, and so do its MCP servers and your hooks.`;

interface Place {
  /** Claude Code's file. */
  file: string;
  /** Where brig keeps its part. */
  directory: string;
  lines: ClaudeLines;
}

function placeOf({ scope, cd }: SetupClaudeFlags, { cwd, environment }: CliContext): Place {
  const project = realDirectory(resolve(cwd, cd ?? "."));
  const ofUser = environment.variables.CLAUDE_CONFIG_DIR ?? join(environment.home, ".claude");
  const file =
    scope === "user"
      ? join(resolve(cwd, ofUser), "settings.json")
      : join(project, ".claude", scope === "local" ? "settings.local.json" : "settings.json");
  const directory = setupDirectory(environment.brigHome, file);
  const shell = shellProgram(directory);
  // Claude Code takes what follows such a dash for arguments of the program.
  if (shell.includes(" -") || /\p{Cc}/u.test(shell))
    throw invalidUsage(
      `Claude Code cannot start a program with the path ${JSON.stringify(shell)}`,
      "set BRIG_HOME to a directory whose path has no dash after a space, and no control characters",
    );
  return { file, directory, lines: { hookCommand: hookCommand(hookProgram(directory)), shell } };
}

async function setUp(
  { file, directory, lines }: Place,
  flags: SetupClaudeFlags,
  context: CliContext,
): Promise<void> {
  const { stdout, stderr, environment } = context;
  const current = await readCurrent(file);
  const { text, had, warnings } = addLines(current ?? "", { lines, file });
  if (flags.print === true) return await write(stdout, text);
  const earlier = readSetup(directory);
  const setup: ClaudeSetup = {
    ...{ settings: file, up: upOptions(flags, directory), after: text },
    ...(earlier === null
      ? { before: current, hadFolder: existsSync(dirname(file)), had }
      : { before: earlier.before, hadFolder: earlier.hadFolder, had: earlier.had }),
  };
  const policy = policyText(flags.sandbox);
  await writeSetup(directory, { setup, policy, brigHome: environment.brigHome });
  if (text !== current) await replaceFile(file, text);
  await write(stdout, written({ file, directory, lines }, flags));
  for (const warning of warnings) await say(stderr, `brig: ${warning}\n`);
}

function written({ file, directory, lines }: Place, { scope }: SetupClaudeFlags): string {
  const where = scope === "user" ? "your projects" : "this project";
  return [
    `wrote ${file}:`,
    `  hooks.PreToolUse: ${lines.hookCommand} decides about each command, and starts the sandbox`,
    `  env.CLAUDE_CODE_SHELL_PREFIX: ${lines.shell} runs each command in the sandbox`,
    `wrote ${directory}: these two programs, their options and the policy`,
    `Start Claude Code again: in ${where}, its commands now run in brig. To go back: brig setup claude${scope === "local" ? "" : ` --scope ${scope}`} --undo`,
    ...(scope === "project"
      ? ["The file names paths of this machine, so do not commit it: commands would not run elsewhere."]
      : []),
    "",
  ].join("\n");
}

/** Gives the file back as it was if nobody has changed it since; otherwise takes out the lines alone. */
async function undo(
  { file, directory, lines }: Place,
  { print }: SetupClaudeFlags,
  { stdout }: CliContext,
): Promise<void> {
  const setup = readSetup(directory);
  const current = await readCurrent(file);
  if (setup === null) return await write(stdout, `nothing to undo in ${file}\n`);
  const isUnchanged = current === setup.after;
  const text = isUnchanged
    ? setup.before
    : current === null
      ? null
      : removeLines(current, { lines, file, had: setup.had });
  if (print === true) return await write(stdout, text ?? "");
  if (text === null) await rm(file, { force: true });
  // Fails where something else is in it by now.
  if (text === null && !setup.hadFolder) await rmdir(dirname(file)).catch(() => undefined);
  if (text !== null && text !== current) await replaceFile(file, text);
  await removeSetup(directory);
  const what =
    text === null ? `removed ${file}` : isUnchanged ? `restored ${file}` : `took brig's lines out of ${file}`;
  const left = "Sandboxes that run are listed by brig ps, and ended by brig rm. Start Claude Code again.";
  await write(stdout, `${what}\nremoved ${directory}\n${left}\n`);
}

/** The options of `brig up` for each project. */
function upOptions(flags: SetupClaudeFlags, directory: string): string[] {
  const given = {
    "--network": flags.network,
    "--container-image": flags.containerImage,
    "--memory": flags.memory,
    "--cpus": flags.cpus,
    "--idle": flags.idle,
  };
  const words = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  return ["--policy", policyFile(directory), ...words];
}

/** What a command could write here, Claude Code would obey on this machine. */
function policyText(mode: string): string {
  return `extends = "${mode}"\n\n[workspace]\nprotected = [".claude", ".mcp.json"]\n`;
}

/** Null if there is none. */
async function readCurrent(file: string): Promise<string | null> {
  const read = await readTextFile(file, MAX_FILE_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "missing") return null;
  throw new BrigError(`${file} ${read.reason}`, { code: "config.invalid", cause: read.cause });
}

function realDirectory(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new BrigError(`there is no directory ${path}`, { code: "usage.invalid", cause });
  }
}
