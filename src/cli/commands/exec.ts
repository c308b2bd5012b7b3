import type { Command } from "commander";
import type { CliContext, PublishedPort } from "../../command/index.js";
import {
  addSandboxOptions,
  attachTerminal,
  closeShown,
  commandDirectory,
  durationArgument,
  ENDS_WITH_INPUT,
  keptNote,
  noteWait,
  openFlaggedSandbox,
  publishOption,
  publishPorts,
  READS_ONLY_EGRESS,
  readInput,
  receiptText,
  runOnPipes,
  type SandboxFlags,
  say,
  secretOption,
  setupNetworkOption,
  setupOption,
  terminalSize,
  write,
  writeJson,
} from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import { step } from "../../lib/steps.js";
import type { ExitStatus, Sandbox, SetupEnd, SpawnOptions } from "../../sandbox/index.js";
import { MAX_TIMEOUT_MS } from "../../sandbox/index.js";
import { exitRemarks } from "../display/exit-remarks.js";
import type { ExecEgress } from "../egress/exec-egress.js";

/** With `--json`, the command's input is kept in memory. */
const maxJsonInputBytes = 64 * 1024 * 1024;

interface ExecFlags extends SandboxFlags {
  timeout?: number;
  interactive?: boolean;
  tty?: boolean;
  json?: boolean;
  in?: string;
  detach?: boolean;
  publish?: PublishedPort[];
}

export function defineExec(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .argument("<command...>", "the program and its arguments")
    .usage("[options] -- COMMAND [ARGUMENT…]")
    .passThroughOptions()
    .option(
      "--timeout <time>",
      "stop the command after this time: 90, 1.5, 30s, 2m",
      durationArgument({ atMostMs: MAX_TIMEOUT_MS }),
    )
    .addOption(publishOption())
    .addOption(secretOption())
    .addOption(setupOption())
    .addOption(setupNetworkOption())
    .option("-i, --interactive", "pass standard input to the command")
    .option("-t, --tty", "give the command a terminal")
    .option("--json", "print one JSON object when the command has ended, and nothing before")
    .option(
      "-d, --detach",
      "with --in: start the command, print the id of its process, and do not wait for it",
    )
    .option(
      "--in <sandbox>",
      "run it in this sandbox of brig up, by its name or id; -C is a directory in there",
    )
    .addHelpText("after", READS_ONLY_EGRESS + exitCodes)
    .action(async (argv: string[], flags: ExecFlags) => {
      refuseImpossible(argv, flags);
      context.setExitStatus(
        flags.in === undefined
          ? await runExec(argv, flags, context)
          : await runInLasting(flags.in, { argv, flags, command }, context),
      );
    });
}

const exitCodes = `
Exit status: that of the command; 124 if it timed out, 125 if brig failed, 126 if the command cannot be executed,
127 if it is not found, 128 + n if signal n ended it, 130 after ctrl-C, 143 after SIGTERM.`;

function refuseImpossible(argv: readonly string[], flags: ExecFlags): void {
  if (argv[0] === "") throw invalidUsage("the command is empty", "see: brig exec --help");
  if (flags.json === true && flags.tty === true)
    throw invalidUsage(
      "--json and --tty cannot be combined: a terminal has no separate stderr",
      "leave out one of them",
    );
  if (flags.detach !== true) return;
  if (flags.in === undefined)
    throw invalidUsage(
      "--detach is for a sandbox that goes on",
      "start one with brig up, and name it: brig exec --in NAME -d -- COMMAND",
    );
  if (flags.interactive === true)
    throw invalidUsage(
      "--detach and --interactive cannot be combined: nobody is left to type",
      "leave out one of them",
    );
}

async function runExec(argv: string[], flags: ExecFlags, context: CliContext): Promise<number> {
  await using sandbox = await openFlaggedSandbox(flags, context);
  await publishPorts(sandbox, { publish: flags.publish, session: null, command: argv.join(" ") }, context);
  const egress = await watchEgress(sandbox, flags, context);
  const inOrder = async () => {
    const setup = await setUp(sandbox, flags, context);
    return await runIn(sandbox, { argv, flags, context, egress, setup });
  };
  const status = await inOrder().catch(async (error: unknown) => {
    // An interrupted command or a failed set-up may nevertheless have left commits or changes.
    await sayWhatIsLeft(sandbox, context).catch(() => undefined);
    throw error;
  });
  step("the command has ended");
  if (flags.keep === true) await say(context.stderr, keptNote(sandbox));
  if (flags.json !== true) {
    await sayWhatIsLeft(sandbox, context);
    await say(context.stderr, egress?.proposalText() ?? "");
  }
  return status;
}

/** Null without `--setup`. Error: `setup.failed`, after which nothing else runs. Without a terminal, only the command writes to stderr. */
async function setUp(sandbox: Sandbox, flags: ExecFlags, context: CliContext): Promise<SetupEnd | null> {
  if (flags.setup === undefined) return null;
  const { runFlaggedSetup } = await import("../../command/index.js");
  return await runFlaggedSetup(sandbox, { flags, printsOutput: false }, context);
}

/** Loads the code only where the hosts that programs try to reach are shown at the end. */
async function watchEgress(
  sandbox: Sandbox,
  { json }: ExecFlags,
  { stderr }: CliContext,
): Promise<ExecEgress | null> {
  const { hasAllowList, settingsOf } = await import("../../sandbox/index.js");
  const { policy, setup } = settingsOf(sandbox);
  const { network } = policy.policy;
  const learns = network.kind === "allowlist" && network.learns === true;
  if (!hasAllowList(network, setup) || (json !== true && !learns)) return null;
  const { ExecEgress } = await import("../egress/exec-egress.js");
  if (learns) await say(stderr, ExecEgress.warning);
  return new ExecEgress(sandbox, { learns });
}

async function sayWhatIsLeft(sandbox: Sandbox, context: CliContext): Promise<void> {
  await say(context.stderr, receiptText(await closeShown(sandbox, context)));
}

async function runInLasting(
  wanted: string,
  { argv, flags, command }: { argv: string[]; flags: ExecFlags; command: Command },
  context: CliContext,
): Promise<number> {
  const { enterSandbox, requireOfTheCommand } = await import("../lasting/exec-in.js");
  requireOfTheCommand(command);
  const sandbox = await enterSandbox(wanted, context);
  const { cd: cwd, env, timeout: timeoutMs, interactive: takesInput = false } = flags;
  const options = { cwd, env, timeoutMs };
  if (flags.detach === true) {
    const pty = flags.tty === true ? terminalSize(context.stdout) : undefined;
    const started = await sandbox.start(argv, { ...options, pty, signal: context.signal });
    if (flags.json === true) await writeJson(context.stdout, started);
    else await write(context.stdout, `${started.id}\n`);
    return 0;
  }
  if (flags.json === true) {
    const input = takesInput ? await jsonInput(context) : undefined;
    const result = await sandbox.exec(argv, { ...options, input, signal: context.signal });
    await writeJson(context.stdout, { ...result, sandbox: sandbox.record.id, receipt: null });
    return result.exitCode;
  }
  const status =
    flags.tty === true
      ? await onTerminal(sandbox, { argv, takesInput, ...options }, context)
      : await runOnPipes(sandbox, { argv, takesInput, ...options }, context);
  await say(context.stderr, exitRemarks(status, { argv, image: sandbox.record.about.image }));
  return status.exitCode;
}

interface Request {
  argv: string[];
  flags: ExecFlags;
  context: CliContext;
  /** Null without an allow-list. */
  egress: ExecEgress | null;
  /** Null without `--setup`. */
  setup: SetupEnd | null;
}

async function runIn(sandbox: Sandbox, request: Request): Promise<number> {
  if (request.flags.json === true) return await runForJson(sandbox, request);
  const status =
    request.flags.tty === true
      ? await runOnTerminal(sandbox, request)
      : await runWithoutTerminal(sandbox, request);
  await say(request.context.stderr, exitRemarks(status, { argv: request.argv, image: sandbox.image }));
  return status.exitCode;
}

async function runForJson(
  sandbox: Sandbox,
  { argv, flags, context, egress, setup }: Request,
): Promise<number> {
  const result = await sandbox.exec(argv, {
    cwd: commandDirectory(flags),
    timeoutMs: flags.timeout,
    stdin: flags.interactive === true ? await jsonInput(context) : undefined,
    signal: context.signal,
  });
  // `output` repeats the contents of `stdout` and `stderr`.
  const { output: _, ...rest } = result;
  const receipt = flags.keep === true ? null : await sandbox.close();
  const before = setup === null ? {} : { setup };
  const warnings = await noticesOf(sandbox);
  await writeJson(context.stdout, {
    ...{ ...rest, sandbox: sandbox.id, ...before, ...egress?.asJson() },
    ...(warnings.length > 0 && { warnings }),
    receipt,
  });
  return result.exitCode;
}

/** Notices about things that do not work in the sandbox. */
async function noticesOf(sandbox: Sandbox): Promise<Pick<BrigError, "code" | "message" | "hint">[]> {
  const { planOf } = await import("../../sandbox/index.js");
  return planOf(sandbox).notices.map(({ code, message, hint }) => ({ code, message, hint }));
}

async function runWithoutTerminal(sandbox: Sandbox, { argv, flags, context }: Request): Promise<ExitStatus> {
  const { timeout: timeoutMs, interactive: takesInput = false } = flags;
  return await runOnPipes(sandbox, { argv, cwd: commandDirectory(flags), timeoutMs, takesInput }, context);
}

async function runOnTerminal(sandbox: Sandbox, { argv, flags, context }: Request): Promise<ExitStatus> {
  const { timeout: timeoutMs, interactive: takesInput = false } = flags;
  return await onTerminal(sandbox, { argv, takesInput, cwd: commandDirectory(flags), timeoutMs }, context);
}

async function onTerminal(
  sandbox: Pick<Sandbox, "spawn">,
  { argv, takesInput, env, ...options }: SpawnOptions & { argv: readonly string[]; takesInput: boolean },
  context: CliContext,
): Promise<ExitStatus> {
  const program = await sandbox.spawn(argv, {
    ...options,
    signal: context.signal,
    pty: terminalSize(context.stdout),
    env: { TERM: context.environment.variables.TERM ?? "xterm", ...env },
  });
  return await attachTerminal(program, context, { takesInput });
}

async function jsonInput(context: CliContext): Promise<Uint8Array> {
  const awaited = "reading the command's input from standard input";
  using _ = noteWait(context.stderr, { awaited, hint: ENDS_WITH_INPUT });
  const { stdin, signal } = context;
  const tooLong = () =>
    invalidUsage(
      `standard input has more than ${maxJsonInputBytes} bytes, the limit with --json`,
      "leave out --json: input of any size is then passed on as it arrives",
    );
  return await readInput(stdin, { signal, maxBytes: maxJsonInputBytes, tooLong });
}
