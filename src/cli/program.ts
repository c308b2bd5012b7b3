import { Command, CommanderError } from "commander";
import { readVersion } from "../version.js";
import type { CliContext, DefineCommand } from "./context.js";
import { describeError, errorAsJson, usageError } from "./errors.js";
import { exitStatusOf, ownFailure } from "./exit-status.js";
import { write, writeJson } from "./render.js";

interface CommandEntry {
  name: string;
  summary: string;
  load: () => Promise<DefineCommand>;
  /** The exit code is the one of the program inside, so that every failure of brig's own is 125: bad usage too. */
  passesExitCodeOn?: boolean;
}

/** Every command in the order of the help. Only the one that is asked for is loaded. */
const commands: CommandEntry[] = [
  {
    name: "run",
    summary: "let a model do a task with its tools in a sandbox",
    load: async () => (await import("./run.js")).defineRun,
  },
  {
    name: "exec",
    summary: "run one command in a sandbox",
    load: async () => (await import("./exec.js")).defineExec,
    passesExitCodeOn: true,
  },
  {
    name: "shell",
    summary: "open an interactive shell in a sandbox",
    load: async () => (await import("./shell.js")).defineShell,
    passesExitCodeOn: true,
  },
  {
    name: "tool",
    summary: "make one tool call",
    load: async () => (await import("./tool.js")).defineTool,
  },
  {
    name: "tools",
    summary: "list the tools, and why each is on or off",
    load: async () => (await import("./tools.js")).defineTools,
  },
  {
    name: "doctor",
    summary: "say whether this machine is fit for brig, and what to do about it",
    load: async () => (await import("./doctor.js")).defineDoctor,
  },
  {
    name: "image",
    summary: "build or list brig's images",
    load: async () => (await import("./image.js")).defineImage,
  },
  {
    name: "gc",
    summary: "remove what dead sessions left behind",
    load: async () => (await import("./gc.js")).defineGc,
  },
];

/** Runs one command line and says what went wrong. Resolves to the exit status of a failure, or to null. */
export async function runProgram(argv: string[], context: CliContext): Promise<number | null> {
  const asked = commands.find(({ name }) => name === (argv[0] === "help" ? argv[1] : argv[0]));
  const program = defineProgram(context);
  const command = program.commands.find((candidate) => candidate.name() === asked?.name);
  try {
    if (asked && command) (await asked.load())(command, context);
    await program.parseAsync(argv.length === 0 ? ["--help"] : argv, { from: "user" });
    return null;
  } catch (thrown) {
    const error = actualError(thrown, { context, asked });
    if (error === null) return null;
    await report(error, { context, asJson: command?.opts().json === true });
    const isOwnFailure = asked?.passesExitCodeOn === true && context.interruption() === null;
    return isOwnFailure ? ownFailure : (context.interruption()?.exitStatus ?? exitStatusOf(error));
  }
}

function defineProgram(context: CliContext): Command {
  const program = withoutProcess(new Command("brig"), context)
    .description("Runs AI agents' tool calls in containers, where they can do no harm.")
    .version(readVersion(), "-V, --version")
    .enablePositionalOptions();
  for (const { name, summary } of commands)
    withoutProcess(program.command(name), context).description(summary);
  return program;
}

/** Commander writes help where it is told to and throws the rest, instead of ending the process. */
function withoutProcess(command: Command, { stdout }: CliContext): Command {
  return command.exitOverride().configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: () => undefined,
    getOutHelpWidth: () => stdout.columns ?? 100,
  });
}

interface Circumstances {
  context: CliContext;
  asked: CommandEntry | undefined;
}

/** After an interruption every error is a consequence of it. Null when there is nothing to report. */
function actualError(thrown: unknown, { context, asked }: Circumstances): unknown {
  if (context.interruption()) return context.signal.reason;
  if (!(thrown instanceof CommanderError)) return thrown;
  return usageError(thrown, asked ? `brig ${asked.name}` : "brig");
}

async function report(
  error: unknown,
  { context, asJson }: { context: CliContext; asJson: boolean },
): Promise<void> {
  if (context.interruption()?.isQuiet) return;
  if (asJson) return await writeJson(context.stdout, errorAsJson(error));
  const showsCauses = context.environment.variables.BRIG_DEBUG !== undefined;
  await write(context.stderr, describeError(error, { showsCauses }));
}
