import { randomBytes } from "node:crypto";
import { constants, realpathSync } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { runOnPipes } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { type EnteredSandbox, enterSandbox } from "../lasting/exec-in.js";
import { isWithin } from "./claude-hook.js";
import { sandboxAround } from "./project-sandbox.js";
import { takeCall, type WaitingCall } from "./waiting-calls.js";
import { readSetup } from "./written-setup.js";

/** What Claude Code adds to a command, to find out in which directory the shell is afterwards. */
const ASKS_DIRECTORY = / && pwd -P >\| (?:'([^']+)'|([^\s'"\\$`]+))$/;
/** Nothing else is written on this machine, whatever the command says. */
const DIRECTORY_FILE = /^\/.*\/claude-[0-9a-f]+-cwd$/;
const MAX_PATH_BYTES = 4096;
/** The command is the input of a shell, since an argument has room for 128 KiB only. It reads nothing itself. */
const RUN = `command=$(cat; printf .); eval -- "\${command%.}" </dev/null && if [ -n "$1" ]; then pwd -P >| "$1"; fi`;
const TAKE = `head -c ${MAX_PATH_BYTES} -- "$1"; rm -f -- "$1"`;
/** With these Claude Code passes on a command that is too long for an argument. */
const CARRIED = /^__CLAUDE_CC_[A-Z0-9_]+$/;

/**
 * Claude Code starts this in place of a shell for each command. The command runs in the project's sandbox, and never on this machine. It is given as
 * `bash -c` would get it, or by the id of a call that the hook has let through.
 */
export function defineClaudeShell(command: Command, context: CliContext): void {
  command
    .requiredOption("--setup <directory>", "what brig setup claude has written")
    .argument("<words...>", "the command, or --call=ID")
    .action(async (words: string[], { setup }: { setup: string }) =>
      context.setExitStatus(await run(words[0] ?? "", setup, context)),
    );
}

async function run(text: string, directory: string, context: CliContext): Promise<number> {
  const asked = ASKS_DIRECTORY.exec(text);
  const directoryFile = asked?.[1] ?? asked?.[2] ?? null;
  const plain = asked === null ? text : text.slice(0, asked.index);
  const call = waitingCall(text, directory) ?? wholeCall(plain, directory, context);
  const sandbox = await enterSandbox(call.sandbox, context);
  const inside = directoryFile === null ? "" : `/tmp/.brig-directory-${randomBytes(8).toString("hex")}`;
  const { exitCode } = await runOnPipes(
    sandbox,
    { argv: ["bash", "-c", RUN, "bash", inside], cwd: call.cwd, env: carried(context), takesInput: true },
    { ...context, stdin: Readable.from([call.command]) },
  );
  if (directoryFile !== null) await tellDirectory(sandbox, { inside, directoryFile }, context);
  return exitCode;
}

/** Null unless the text has the id of a call that waits. */
function waitingCall(text: string, directory: string): WaitingCall | null {
  const id = /--call=([0-9a-f]{32})/.exec(text)?.[1];
  return id === undefined ? null : takeCall(directory, id);
}

function wholeCall(command: string, directory: string, context: CliContext): WaitingCall {
  if (command.startsWith("--call="))
    throw invalidUsage(
      "this call of Claude Code has been made already, or was never allowed",
      "let Claude Code run the command again",
    );
  const setup = readSetup(directory);
  const record = setup === null ? null : sandboxAround(context.cwd, setup, context);
  if (record !== null) return { sandbox: record.name, cwd: realpathSync(context.cwd), command };
  throw new BrigError(`no sandbox runs for ${context.cwd}, so the command was not run`, {
    code: "sandbox.unknown",
    hint: "the hook of brig setup claude starts it before a command: see whether Claude Code runs hooks (/hooks), and whether this is in the project",
  });
}

function carried({ environment }: CliContext): Record<string, string> {
  return Object.fromEntries(Object.entries(environment.variables).filter(([name]) => CARRIED.test(name)));
}

/** Writes where the shell was in the end to the file from which Claude Code reads it, if that is a directory which both see. */
async function tellDirectory(
  sandbox: EnteredSandbox,
  { inside, directoryFile }: { inside: string; directoryFile: string },
  { signal }: CliContext,
): Promise<void> {
  if (!DIRECTORY_FILE.test(directoryFile)) return;
  const { stdout } = await sandbox.exec(["sh", "-c", TAKE, "sh", inside], { input: undefined, signal });
  const directory = stdout.replace(/\n$/, "");
  const { workspace } = sandbox.record.about;
  if (workspace === null || !isWithin(directory, workspace) || /\p{Cc}/u.test(directory)) return;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const file = await open(directoryFile, flags, 0o600);
  await file.writeFile(`${directory}\n`).finally(() => file.close());
}
