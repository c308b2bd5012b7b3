import { realpathSync } from "node:fs";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { readInput, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { nullish, object, readOrNull, string } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { COMMAND_TOOLS } from "./claude-settings.js";
import { ensureSandbox } from "./project-sandbox.js";
import { keepCall } from "./waiting-calls.js";
import { readSetup, shellProgram } from "./written-setup.js";

const MAX_INPUT_BYTES = 16 * 1024 * 1024;
const MAX_COMMAND_CHARS = 1024 * 1024;
/** A longer one does not fit into an argument of a program with what Claude Code adds to it. */
const MAX_ARGUMENT_BYTES = 64 * 1024;
const MAX_SHOWN_CHARS = 500;

const callShape = object({
  tool_name: string,
  cwd: string,
  tool_input: object({ command: nullish(string) }),
});

interface HookFlags {
  setup: string;
  guarded?: boolean;
}

/** Claude Code starts this before each command. The answer is JSON on stdout. */
export function defineClaudeHook(command: Command, context: CliContext): void {
  command
    .requiredOption("--setup <directory>", "what brig setup claude has written")
    .option("--guarded", "Claude Code has started this through the program for commands")
    .action(async (flags: HookFlags) => {
      const decision = await decide(flags, context).catch((error: unknown) => denied(reasonOf(error)));
      const hookSpecificOutput = { hookEventName: "PreToolUse", ...decision };
      await write(context.stdout, `${JSON.stringify({ hookSpecificOutput })}\n`);
    });
}

interface Decision {
  permissionDecision: "allow" | "deny";
  permissionDecisionReason: string;
  updatedInput?: object;
}

/**
 * Allows only what runs in the project's sandbox. Where it is sure that Claude Code runs commands through our program, because it has just done so
 * with this hook, the command stays as it is; otherwise it becomes a call of that program.
 */
async function decide({ setup: directory, guarded }: HookFlags, context: CliContext): Promise<Decision> {
  const setup = readSetup(directory);
  if (setup === null)
    return denied("brig setup claude has been undone or moved; start Claude Code again, or set it up again");
  const input = parseJson(await readCall(context));
  const call = readOrNull(callShape, input);
  if (call === null) return denied("brig does not understand what Claude Code says of this call");
  const { tool_name: tool, cwd, tool_input: given } = call;
  const command = given.command ?? "";
  if (tool === "PowerShell" || !COMMAND_TOOLS.includes(tool) || command === "")
    return denied(`brig runs commands of bash only, and this is a call of ${tool} without one`);
  if (command.includes("\0")) return denied("the command has a NUL character, which no shell can run");
  if (command.length > MAX_COMMAND_CHARS)
    return denied(`the command is longer than ${MAX_COMMAND_CHARS} characters; write it to a file first`);
  const project = context.environment.variables.CLAUDE_PROJECT_DIR ?? cwd;
  const record = await ensureSandbox(project, setup, context);
  const workspace = record.about.workspace ?? project;
  if (!isWithin(realpathSync(cwd), workspace))
    return denied(`the sandbox of this project has only ${workspace}, and ${cwd} is not in it`);
  const permissionDecisionReason = `runs in the sandbox ${record.name} of brig`;
  const allowed = { permissionDecision: "allow", permissionDecisionReason } as const;
  if (guarded === true && Buffer.byteLength(command) <= MAX_ARGUMENT_BYTES) return allowed;
  const id = keepCall(directory, { sandbox: record.name, cwd: realpathSync(cwd), command });
  const shown = command.length <= MAX_SHOWN_CHARS ? command : `${command.slice(0, MAX_SHOWN_CHARS)}…`;
  const words = [shellProgram(directory), `--call=${id}`, shown];
  const toolInput = (input as { tool_input: object }).tool_input;
  return { ...allowed, updatedInput: { ...toolInput, command: shellQuote(words) } };
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

async function readCall({ stdin, signal }: CliContext): Promise<string> {
  const tooLong = () => invalidUsage("the call is too long", "write the command to a file first");
  return (await readInput(stdin, { signal, maxBytes: MAX_INPUT_BYTES, tooLong })).toString();
}

function denied(reason: string): Decision {
  return { permissionDecision: "deny", permissionDecisionReason: `${reason}. Nothing was run.` };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof BrigError)) return `brig has failed: ${String(error)}`;
  return `brig cannot run commands of this project in a sandbox: ${error.message}${error.hint === undefined ? "" : ` (${error.hint})`}`;
}
