import type { Command } from "commander";
import type { CliContext, PublishedPort } from "../../command/index.js";
import {
  addSandboxOptions,
  attachTerminal,
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
}

export function defineShell(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .addOption(publishOption())
    .addOption(secretOption())
    .addOption(setupOption())
    .addOption(setupNetworkOption())
    .addHelpText("after", READS_ONLY_EGRESS)
    .action(async (flags: ShellFlags) => {
      context.setExitStatus(await runShell(flags, context));
    });
}

async function runShell(flags: ShellFlags, context: CliContext): Promise<number> {
  if (context.stdin.isTTY !== true || context.stdout.isTTY !== true)
    throw invalidUsage(
      "brig shell needs a terminal on standard input and output",
      "to run a script: brig exec -i -- sh < FILE",
    );
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
  await say(context.stderr, receiptText(await sandbox.close()));
  return exitCode;
}

/** The variables that tell programs about the terminal; nothing else of the user's environment is passed on. */
function terminalVariables({ environment }: CliContext): Record<string, string> {
  const { TERM = "xterm", COLORTERM } = environment.variables;
  return COLORTERM === undefined ? { TERM } : { TERM, COLORTERM };
}
