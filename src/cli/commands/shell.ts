import type { Command } from "commander";
import type { CliContext, PublishedPort } from "../../command/index.js";
import {
  addSandboxOptions,
  attachTerminal,
  closeShown,
  commandDirectory,
  keptNote,
  openFlaggedSandbox,
  publishOption,
  publishPorts,
  READS_ONLY_EGRESS,
  receiptText,
  type SandboxFlags,
  say,
  secretOption,
  setupNetworkOption,
  setupOption,
  terminalSize,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";

/** Bash if the image has it, else sh. */
const shell = ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

interface ShellFlags extends SandboxFlags {
  publish?: PublishedPort[];
  in?: string;
}

export function defineShell(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .addOption(publishOption())
    .addOption(secretOption())
    .addOption(setupOption())
    .addOption(setupNetworkOption())
    .option("--in <sandbox>", "a new shell in this sandbox of brig up; -C is a directory in there")
    .addHelpText("after", READS_ONLY_EGRESS)
    .action(async (flags: ShellFlags) => {
      requireTerminal(context);
      context.setExitStatus(
        flags.in === undefined
          ? await runShell(flags, context)
          : await runShellIn(flags.in, { flags, command }, context),
      );
    });
}

function requireTerminal(context: CliContext): void {
  if (context.stdin.isTTY !== true || context.stdout.isTTY !== true)
    throw invalidUsage(
      "brig shell needs a terminal on standard input and output",
      "to run a script: brig exec -i -- sh < FILE",
    );
}

async function runShellIn(
  wanted: string,
  { flags, command }: { flags: ShellFlags; command: Command },
  context: CliContext,
): Promise<number> {
  const { enterSandbox, requireOfTheCommand } = await import("../lasting/exec-in.js");
  requireOfTheCommand(command);
  const sandbox = await enterSandbox(wanted, context);
  const program = await sandbox.spawn(shell, {
    cwd: flags.cd,
    signal: context.signal,
    pty: terminalSize(context.stdout),
    env: { ...terminalVariables(context), ...flags.env },
  });
  return (await attachTerminal(program, context, { takesInput: true })).exitCode;
}

async function runShell(flags: ShellFlags, context: CliContext): Promise<number> {
  await using sandbox = await openFlaggedSandbox(flags, context);
  await publishPorts(sandbox, { publish: flags.publish, session: null, command: "brig shell" }, context);
  if (flags.setup !== undefined) {
    const { setUpBeforeTerminal } = await import("../../command/index.js");
    await setUpBeforeTerminal(sandbox, flags, context);
  }
  const program = await sandbox.spawn(shell, {
    cwd: commandDirectory(flags),
    signal: context.signal,
    pty: terminalSize(context.stdout),
    env: terminalVariables(context),
  });
  const { exitCode } = await attachTerminal(program, context, { takesInput: true });
  if (flags.keep === true) await say(context.stderr, keptNote(sandbox));
  await say(context.stderr, receiptText(await closeShown(sandbox, context)));
  return exitCode;
}

/** The variables that tell programs about the terminal; nothing else of the user's environment is passed on. */
function terminalVariables({ environment }: CliContext): Record<string, string> {
  const { TERM = "xterm", COLORTERM } = environment.variables;
  return COLORTERM === undefined ? { TERM } : { TERM, COLORTERM };
}
