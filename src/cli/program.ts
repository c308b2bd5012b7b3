import { Command, CommanderError } from "commander";
import { jsonText } from "../lib/json-text.js";
import { suggest } from "../lib/suggest.js";
import { readVersion } from "../version.js";
import { checkHome } from "./check-home.js";
import type { CommandEntry } from "./command-list.js";
import type { CliContext } from "./context.js";
import { CONVERSE, canConverse } from "./conversation/can-converse.js";
import { describeError, errorAsEvent, errorAsJson, usageError } from "./display/error-text.js";
import { exitStatusOf, ownFailure } from "./exit-status.js";
import { say, write, writeJson } from "./render.js";

const ownFlags = ["-h", "--help", "-V", "--version"];

/** The program that a command line is for. */
export interface ProgramUse {
  context: CliContext;
  commands: readonly CommandEntry[];
  /** Default: brig, which holds a conversation where no command is named. */
  program?: { name: string; description: string } | undefined;
}

/** Runs one command line and says what went wrong. Resolves to the exit status of a failure, or to null. */
export async function runProgram(given: string[], use: ProgramUse): Promise<number | null> {
  const { context, commands } = use;
  const converses = use.program === undefined && beginsConversation(given, use);
  const argv = converses ? ["run", CONVERSE, ...given] : withoutVainHelp(given, commands);
  const asked = commands.find(({ name }) => name === (argv[0] === "help" ? argv[1] : argv[0]));
  const program = defineProgram(use);
  const command = program.commands.find((candidate) => candidate.name() === asked?.name);
  try {
    if (asked && command) (await asked.load())(command, context);
    if (argv.length === 0 && use.program === undefined) await explainItself(program, context);
    else if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: "user" });
    return null;
  } catch (thrown) {
    const error = actualError(thrown, { context, program });
    if (error === null) return null;
    await report(error, { context, asked, asJson: command !== undefined && asksForJson(command) });
    const isOwnFailure = asked?.passesExitCodeOn === true && context.interruption() === null;
    return isOwnFailure ? ownFailure : (context.interruption()?.exitStatus ?? exitStatusOf(error));
  }
}

/** Help for what is no command is that command, which is then not known. */
function withoutVainHelp(argv: string[], commands: readonly CommandEntry[]): string[] {
  const [first, topic] = argv;
  const isVain = first === "help" && topic !== undefined && !commands.some(({ name }) => name === topic);
  return isVain ? argv.slice(1) : argv;
}

/** The help; to somebody at a terminal also why it is that and no conversation. */
async function explainItself(program: Command, context: CliContext): Promise<void> {
  program.outputHelp();
  const { stdin, stdout, stderr, environment } = context;
  if (stdin.isTTY !== true || stdout.isTTY !== true) return;
  const why = environment.isContinuousIntegration ? "CI is set" : `TERM is ${environment.variables.TERM}`;
  await say(
    stderr,
    `\nbrig: no conversation can be drawn here, since ${why}; brig run PROMPT does one task\n`,
  );
}

/** On a terminal, whatever is no command is a prompt or an option of `brig run`, and begins a conversation. */
function beginsConversation([first]: string[], { context, commands }: ProgramUse): boolean {
  if (!canConverse(context)) return false;
  if (first === undefined) return true;
  if (first.startsWith("-")) return !ownFlags.includes(first);
  const names = ["help", ...commands.map(({ name }) => name)];
  // A single word that is nearly a command was meant to be it.
  return !names.includes(first) && (/\s/.test(first) || suggest(first, names) === null);
}

const brig = {
  name: "brig",
  description:
    "Runs AI agents' tool calls in containers, where they can do no harm.\n\n" +
    'Without a command it holds a conversation on a terminal, with the options of brig run: brig "fix the tests".',
};

function defineProgram({ context, commands, program: { name, description } = brig }: ProgramUse): Command {
  const program = withoutProcess(new Command(name), context)
    .description(description)
    .version(readVersion(), "-V, --version")
    .hook("preAction", async () => await checkHome(context.environment))
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

/** `--json` of the command, or of one below it such as `image ls`. */
function asksForJson(command: Command): boolean {
  return command.opts().json === true || command.commands.some(asksForJson);
}

/** After an interruption every error is a consequence of it. Null when there is nothing to report. */
function actualError(
  thrown: unknown,
  { context, program }: { context: CliContext; program: Command },
): unknown {
  if (context.interruption()) return context.signal.reason;
  return thrown instanceof CommanderError ? usageError(thrown, commandReached(program)) : thrown;
}

/** The command that the words given so far lead to. */
function commandReached(command: Command): Command {
  const [word = ""] = command.args;
  const below = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
  return below === undefined ? command : commandReached(below);
}

async function report(
  error: unknown,
  { context, asked, asJson }: { context: CliContext; asked: CommandEntry | undefined; asJson: boolean },
): Promise<void> {
  if (context.interruption()?.isQuiet) return;
  const printsEvents = asJson && asked?.printsEvents === true;
  if (printsEvents) await write(context.stdout, `${jsonText(errorAsEvent(error))}\n`);
  else if (asJson) return await writeJson(context.stdout, errorAsJson(error));
  const showsCauses = context.environment.variables.BRIG_DEBUG !== undefined;
  await say(context.stderr, describeError(error, { showsCauses }));
}
