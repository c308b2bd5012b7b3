import { Command, CommanderError } from "commander";
import type { CliContext } from "../command/index.js";
import { describeError, errorAsEvent, errorAsJson, say, write, writeJson } from "../command/index.js";
import { jsonText } from "../lib/json/json-text.js";
import { suggest } from "../lib/suggest.js";
import { readVersion } from "../version.js";
import { checkHome, environmentProblem } from "./check-home.js";
import type { CommandEntry } from "./command-entry.js";
import { CONVERSE, canConverse } from "./conversation/can-converse.js";
import { exitStatusOf, ownFailure } from "./exit-status.js";
import { hintForCommand } from "./usage/familiar-commands.js";
import { addGlobalOptions, countGlobals, globalOptions, outputChoice } from "./usage/global-options.js";

const ownFlags = ["-h", "--help", "-V", "--version"];

export interface ProgramOptions {
  context: CliContext;
  commands: readonly CommandEntry[];
  /** Default: brig, which starts a conversation when no command is named. */
  program?: { name: string; description: string } | undefined;
}

/** Runs one command line and reports errors. Resolves to the exit status of a failure, or to null. */
export async function runProgram(line: string[], options: ProgramOptions): Promise<number | null> {
  const { context, commands } = options;
  const isBrig = options.program === undefined;
  const globals = line.slice(0, isBrig ? countGlobals(line) : 0);
  const given = line.slice(globals.length);
  const unusable = environmentProblem(context);
  if (unusable !== null) {
    await say(context.essentialStderr, describeError(unusable, { showsCauses: false }));
    const isPassedOn = commands.some(({ name, passesExitCodeOn }) => name === given[0] && passesExitCodeOn);
    return isPassedOn ? ownFailure : exitStatusOf(unusable);
  }
  const converses = isBrig && startsConversation(given, options);
  const argv = converses ? ["run", CONVERSE, ...given] : withoutUnknownTopic(given, commands);
  const entry = commands.find(({ name }) => name === (argv[0] === "help" ? argv[1] : argv[0]));
  const program = defineProgram(options);
  const command = program.commands.find((candidate) => candidate.name() === entry?.name);
  try {
    if (entry && command) await define(command, entry, options);
    if (argv.length === 0 && isBrig) await printHelp(program, context);
    else if (argv.length === 0) program.outputHelp();
    else await program.parseAsync([...globals, ...argv], { from: "user" });
    return null;
  } catch (thrown) {
    const error = await actualError(thrown, { context, program });
    if (error === null) return null;
    await report(error, { context, entry, asJson: command !== undefined && asksForJson(command) });
    const interruption = context.interruption();
    if (interruption !== null) return interruption.exitStatus;
    return entry?.passesExitCodeOn === true ? ownFailure : exitStatusOf(error);
  }
}

/** Makes `brig help TOPIC` fail for an unknown topic; commander would print the general help. */
function withoutUnknownTopic(argv: string[], commands: readonly CommandEntry[]): string[] {
  const [first, topic] = argv;
  const isUnknown = first === "help" && topic !== undefined && !commands.some(({ name }) => name === topic);
  return isUnknown ? argv.slice(1) : argv;
}

/** Prints the help, and to a person at a terminal also why no conversation started. */
async function printHelp(program: Command, context: CliContext): Promise<void> {
  program.outputHelp();
  const { stdin, stdout, stderr, environment } = context;
  if (stdin.isTTY !== true || stdout.isTTY !== true) return;
  const why = environment.isContinuousIntegration ? "CI is set" : `TERM is ${environment.variables.TERM}`;
  await say(stderr, `\nbrig: a conversation cannot start here because ${why}; use brig run PROMPT instead\n`);
}

/** Asks for the terminal last: Node opens stdin for that, which a short command need not wait for. */
function startsConversation([first]: string[], { context, commands }: ProgramOptions): boolean {
  return mayStartConversation(first, commands) && canConverse(context);
}

/** At a terminal, anything but a command starts a conversation: it is a prompt or an option of `brig run`. */
function mayStartConversation(first: string | undefined, commands: readonly CommandEntry[]): boolean {
  if (first === undefined) return true;
  if (first.startsWith("-")) return !ownFlags.includes(first);
  const names = ["help", ...commands.map(({ name }) => name)];
  // A single word that is almost a command, or one of another program, is more likely a mistake than a prompt.
  const isMistake = () => suggest(first, names) !== null || hintForCommand(first) !== null;
  return !names.includes(first) && (/\s/.test(first) || !isMistake());
}

const brig = {
  name: "brig",
  description:
    "Runs AI agents' tool calls in containers, where they can do no harm.\n\n" +
    'Without a command, brig starts a conversation at the terminal, with the options of brig run: brig "fix the tests".',
};

/** The program, with the arguments and options of the commands of these names. */
export async function programOf(
  names: readonly string[],
  options: Pick<ProgramOptions, "context" | "commands">,
): Promise<Command> {
  const program = defineProgram(options);
  for (const entry of options.commands.filter(({ name }) => names.includes(name))) {
    const command = program.commands.find((candidate) => candidate.name() === entry.name);
    if (command !== undefined) await define(command, entry, options);
  }
  return program;
}

/** Gives a command its own arguments and options, and those of every command. */
async function define(
  command: Command,
  { load, isHidden = false }: CommandEntry,
  { context, program }: Pick<ProgramOptions, "context" | "program">,
): Promise<void> {
  (await load())(command, context);
  // What is for brig itself takes words that are not its own.
  if (program === undefined && !isHidden) addGlobalOptions(command);
}

function defineProgram({ context, commands, program: own }: ProgramOptions): Command {
  const { name, description } = own ?? brig;
  const program = withoutProcess(new Command(name), context)
    .description(description)
    .version(readVersion(), "-V, --version")
    .hook("preAction", (_, command) => {
      if (own === undefined) context.chooseOutput(outputChoice(command));
    })
    .hook("preAction", () => checkHome(context.environment))
    .hook("preAction", async (_, command) => await withEnvFiles(command, context))
    .hook("preAction", async (_, command) => await withChosenImage(command, context))
    .enablePositionalOptions();
  if (own === undefined) for (const option of globalOptions()) program.addOption(option);
  for (const { name, group = "Commands:", summary, isHidden = false } of commands)
    withoutProcess(program.command(name, { hidden: isHidden }), context)
      .description(summary)
      .helpGroup(group);
  return program;
}

/** Loaded only where there are such files. */
async function withEnvFiles(command: Command, context: CliContext): Promise<void> {
  if (command.opts().envFile === undefined) return;
  const { readEnvFiles } = await import("../command/index.js");
  await readEnvFiles(command, context);
}

/** Loaded only where the image has to be built or read about. */
async function withChosenImage(command: Command, context: CliContext): Promise<void> {
  const { containerImage, dockerfile, devcontainer } = command.opts();
  if (dockerfile === undefined && devcontainer === undefined && !isPath(containerImage)) return;
  const { chooseImage } = await import("../command/index.js");
  await chooseImage(command, context);
}

/** No name of an image begins as a path does. */
function isPath(image: unknown): boolean {
  return typeof image === "string" && /^(?:\.{0,2}\/|\.{1,2}$)/.test(image);
}

/** Makes commander write help to our stdout and throw its errors, instead of ending the process. */
function withoutProcess(command: Command, { stdout }: CliContext): Command {
  return command.exitOverride().configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: () => undefined,
    getOutHelpWidth: () => stdout.columns ?? 100,
  });
}

/** Whether `--json` was given to the command or to a subcommand such as `image ls`. */
function asksForJson(command: Command): boolean {
  return command.opts().json === true || command.commands.some(asksForJson);
}

/** After an interruption every error is a consequence of it. Returns null when there is nothing to report. */
async function actualError(
  thrown: unknown,
  { context, program }: { context: CliContext; program: Command },
): Promise<unknown> {
  if (context.interruption()) return context.signal.reason;
  if (!(thrown instanceof CommanderError)) return thrown;
  const { usageError } = await import("./usage/usage-error.js");
  return usageError(thrown, commandReached(program));
}

function commandReached(command: Command): Command {
  const [word = ""] = command.args;
  const below = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
  return below === undefined ? command : commandReached(below);
}

async function report(
  error: unknown,
  { context, entry, asJson }: { context: CliContext; entry: CommandEntry | undefined; asJson: boolean },
): Promise<void> {
  if (context.interruption()?.isQuiet) return;
  const printsEvents = asJson && entry?.printsEvents === true;
  if (printsEvents) await write(context.stdout, `${jsonText(await errorAsEvent(error))}\n`);
  else if (asJson) return await writeJson(context.stdout, errorAsJson(error));
  const showsCauses = context.environment.variables.BRIG_DEBUG !== undefined;
  await say(context.essentialStderr, describeError(error, { showsCauses }));
}
