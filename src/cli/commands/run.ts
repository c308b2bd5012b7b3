import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Writable } from "node:stream";
import { type Command, Option } from "commander";
import type {
  AgentEvent,
  AgentResult,
  EarlierSession,
  SessionHost,
  SessionLog,
  SessionSetting,
} from "../../agent/index.js";
import { JsonEvents, prepareSession, runAgent } from "../../agent/index.js";
import type { CliContext, OutputStream } from "../../command/index.js";
import {
  addAgentOptions,
  ChangesWork,
  publishOption,
  say,
  sessionHost,
  terminalSize,
  usesColour,
  write,
} from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { jsonText } from "../../lib/json/json-text.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import type { OnCopied } from "../../sandbox/index.js";
import { CONVERSE, canConverse, isScreen } from "../conversation/can-converse.js";
import { startConversation } from "../conversation/start-conversation.js";
import { isTurnEnd } from "../display/live-run-display.js";
import { showRun } from "../display/run-display.js";
import { usageText } from "../display/usage-text.js";
import { exitStatusOf } from "../exit-status.js";
import { readImages, readPrompt } from "../setup/run-input.js";
import { runSettings, type SessionFlags } from "../setup/session-flags.js";
import { canAsk } from "../setup/tool-settings.js";

export interface RunFlags extends SessionFlags {
  json?: boolean;
  outputLastMessage?: string;
  converse?: boolean;
}

export function defineRun(command: Command, context: CliContext): void {
  addRunOptions(command)
    .addOption(new Option(CONVERSE).hideHelp())
    .argument("[prompt]", "what to do; if it is missing or -, it is read from standard input")
    .action(async (prompt: string | undefined, flags: RunFlags) => {
      const isOpening = prompt === undefined || (flags.converse === true && prompt !== "-");
      if (isOpening && wantsConversation(flags, context)) {
        return await startConversation({ flags, context, prompt });
      }
      await runCommand(prompt, flags, { context });
    });
}

export function addRunOptions(command: Command): Command {
  return addAgentOptions(command)
    .addOption(publishOption())
    .option(
      "--in <sandbox>",
      "work in this sandbox of brig up, by its name or id; -C is a directory in there",
    )
    .hook("preAction", refuseOtherSandbox)
    .option("--json", "print only events on stdout, one JSON object per line")
    .option("-o, --output-last-message <file>", "also write the final message to this file");
}

async function refuseOtherSandbox(command: Command): Promise<void> {
  if (command.opts<RunFlags>().in === undefined) return;
  const { requireOfTheModel } = await import("../lasting/exec-in.js");
  requireOfTheModel(command);
}

/** Whether brig without a prompt starts a conversation. The flags are for programs, which want one result. */
export function wantsConversation({ json, outputLastMessage }: RunFlags, context: CliContext): boolean {
  return json !== true && outputLastMessage === undefined && canConverse(context);
}

interface RunOptions {
  context: CliContext;
  /** Instead of what is read from the command line and standard input. */
  given?: { prompt: string; outputSchema: Record<string, unknown> };
  /** The session to continue; the caller closes it. Default: a new session. */
  earlier?: EarlierSession | undefined;
}

export async function runCommand(
  argument: string | undefined,
  flags: RunFlags,
  options: RunOptions,
): Promise<void> {
  const { result, session, output } = await runSession(argument, flags, options);
  const { context } = options;
  const message = await finish(result, { flags, context, session });
  const isMarkdown = flags.outputSchema === undefined;
  if (message !== null) await deliver(message, { json: flags.json, isMarkdown, output, context });
}

export async function runSession(
  argument: string | undefined,
  flags: RunFlags,
  { context, earlier, given }: RunOptions,
): Promise<{ result: AgentResult; session: SessionLog | undefined; output: OutputFile | null }> {
  // Reports wrong flags before standard input is read.
  const { outputSchema } = given ?? {};
  const settings = { ...(await runSettings(flags, context)), ...(outputSchema && { outputSchema }) };
  const output = await outputFile(flags, context);
  const prompt = given?.prompt ?? (await readPrompt(argument, context));
  const images = await readImages(flags.image ?? [], context);
  const person = canAsk(context) ? await personAtTerminal(context) : {};
  const messages = new PausableOutput(context.stderr);
  const shown: { ending?: ChangesWork } = {};
  const onCopied: OnCopied = (copied) => shown.ending?.onCopied(copied);
  const host = { ...sessionHost({ ...context, stderr: messages }, flags), ...person, onCopied };
  const { options } = await prepareSession({ ...settings, hasManyTurns: false, earlier }, host);
  const show = createListener(flags, context);
  const learning = await learningOf(options.setting, context);
  const onEvent = (event: AgentEvent) => {
    learning?.take(event);
    // What comes after the turn says how the session has ended.
    shown.ending?.[Symbol.dispose]();
    show(event);
    if (isTurnEnd(event) && context.stderr.isTTY === true)
      shown.ending ??= new ChangesWork(context, "ending the session");
  };
  // Only on a terminal is anything drawn that they could mix with.
  if (context.stderr.isTTY === true) messages.pause();
  try {
    const result = await runAgent({ ...options, prompt, images, signal: context.signal, onEvent });
    return { result, session: options.session, output };
  } finally {
    shown.ending?.[Symbol.dispose]();
    await messages.resume();
    await learning?.end(flags);
  }
}

/** Null unless the network is to be learned. */
async function learningOf({ network }: SessionSetting, context: CliContext) {
  if (network.kind !== "allowlist" || network.learns !== true) return null;
  const { Learned, LEARNING, proposalText, wireProposal } = await import("../egress/learning.js");
  await say(context.stderr, LEARNING);
  const learned = new Learned();
  return {
    take: learned.take,
    async end({ json }: RunFlags) {
      const { proposal } = learned;
      if (json !== true) return await say(context.stderr, proposalText(proposal));
      await write(context.stdout, `${jsonText({ type: "egress.proposed", ...wireProposal(proposal) })}\n`);
    },
  };
}

function createListener({ json }: RunFlags, context: CliContext): (event: AgentEvent) => void {
  if (json === true) {
    const events = new JsonEvents();
    return (event) => {
      for (const line of events.translate(event)) context.stdout.write(`${jsonText(line)}\n`);
    };
  }
  return showRun(context);
}

/** Loaded only when a person can be asked: the code that lays out the questions has large Unicode tables. */
async function personAtTerminal(context: CliContext): Promise<Pick<SessionHost, "user" | "approver">> {
  const [{ terminalUser }, { terminalApprover }, { askInTurn }] = await Promise.all([
    import("../questions/ask-user.js"),
    import("../questions/ask-approval.js"),
    import("../questions/ask-in-turn.js"),
  ]);
  const { stdin, essentialStderr: stderr } = context;
  const terminal = { stdin, stderr, suspend: () => context.suspend() };
  return askInTurn({
    user: terminalUser(terminal),
    approver: terminalApprover(terminal, { usesColour: usesColour(context) }),
  });
}

/** Says how the session ended. Returns its last message; null where it has failed. Throws what made it fail, unless events say it. */
export async function finish(
  result: AgentResult,
  { flags, context, session }: { flags: RunFlags; context: CliContext; session: SessionLog | undefined },
): Promise<string | null> {
  if (flags.json !== true) await say(context.stderr, summary(result));
  const trouble = session?.trouble ?? null;
  if (trouble !== null) await say(context.essentialStderr, `brig: ${neutralise(trouble)}\n`);
  if (result.status === "interrupted") {
    // Without a signal, the answer to a question ended the turn.
    const ended = new BrigError("an answer to a question of the agent ended the turn", { code: "aborted" });
    if (flags.json !== true) throw context.signal.reason ?? ended;
    context.setExitStatus(context.interruption()?.exitStatus ?? 130);
    return null;
  }
  if (result.error !== undefined) {
    if (flags.json !== true) throw result.error;
    context.setExitStatus(exitStatusOf(result.error));
    return null;
  }
  return result.lastMessage ?? "";
}

interface Delivery {
  /** Whether the message is in the events already. Default: false. */
  json?: boolean | undefined;
  /** Whether a person at a terminal is shown the message laid out. Default: false. */
  isMarkdown?: boolean;
  /** Null if no file is asked for. */
  output: OutputFile | null;
  context: CliContext;
}

/** Prints the message before it writes the file, so that the message is not lost if writing fails. */
export async function deliver(
  message: string,
  { json, isMarkdown, output, context }: Delivery,
): Promise<void> {
  if (json !== true && message !== "") await print(message, { isMarkdown, context });
  if (output === null) return;
  if (message === "") await say(context.stderr, "brig: there is no final message, so the file is empty\n");
  await output.write(message);
}

async function print(
  message: string,
  { isMarkdown, context }: Pick<Delivery, "isMarkdown" | "context">,
): Promise<void> {
  if (isMarkdown === true && isScreen(context)) {
    // Loaded only now, because the parser would delay the first request.
    const { messageText } = await import("../conversation/screen/markdown-lines.js");
    const { cols: columns } = terminalSize(context.stdout);
    const usesColour = !context.environment.forbidsColor;
    return await write(context.stdout, messageText(message, { columns, usesColour }));
  }
  const text = message.endsWith("\n") ? message : `${message}\n`;
  // A pipe is neutralised too, because it may end at a terminal, such as the log of a CI job. Invisible
  // characters stay in it: they are harmless there, and a program may need the exact text.
  await write(context.stdout, neutralise(text, { keepsInvisible: context.stdout.isTTY !== true }));
}

/** The file for the final message. Its directory was found before the work began, and is compared before it is written. */
export interface OutputFile {
  write(message: string): Promise<void>;
}

/**
 * Fails before the work begins if the final message cannot be written. An agent may replace the file by a symbolic link while it works, so no
 * link is followed, except in `/dev`, where links stand for a program's own streams. Null if no file is asked for.
 */
async function outputFile({ outputLastMessage }: RunFlags, { cwd }: CliContext): Promise<OutputFile | null> {
  if (outputLastMessage === undefined) return null;
  const file = resolve(cwd, outputLastMessage);
  const isDirectory = async (path: string) => (await stat(path).catch(() => null))?.isDirectory() === true;
  if (!(await isDirectory(dirname(file))) || (await isDirectory(file)))
    throw invalidUsage(
      `the final message cannot be written to ${file}`,
      "name a file in a directory that exists",
    );
  const folder = await realpath(dirname(file));
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
  // Opening a pipe that nobody reads would never end.
  const careful = file.startsWith("/dev/") ? 0 : O_NOFOLLOW | O_NONBLOCK;
  return {
    async write(message) {
      try {
        if ((await realpath(dirname(file))) !== folder)
          throw new Error("its directory has become another one");
        await using handle = await open(file, O_WRONLY | O_CREAT | O_TRUNC | careful, 0o666);
        await handle.writeFile(message);
      } catch (cause) {
        throw new BrigError(`the final message cannot be written to ${file}`, {
          code: "usage.invalid",
          hint: errnoOf(cause) === "ELOOP" ? "it is a symbolic link: name another file" : undefined,
          cause,
        });
      }
    },
  };
}

function summary({ toolCalls, callLatenciesMs, sessionFile, ...used }: AgentResult): string {
  const median = medianOf(callLatenciesMs);
  const parts = [
    `${toolCalls} tool ${toolCalls === 1 ? "call" : "calls"}`,
    ...(median === null ? [] : [`median ${formatDuration(median)}`]),
    ...usageText(used),
  ];
  return `${parts.join(" · ")}\nsession file ${sessionFile ?? "none"}\n`;
}

function medianOf(numbers: readonly number[]): number | null {
  const sorted = numbers.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  return upper === undefined || lower === undefined ? null : (upper + lower) / 2;
}

/** Keeps what is written while it is paused, so that it does not mix with what is drawn on the terminal. */
class PausableOutput extends Writable {
  readonly #target: OutputStream;
  readonly #kept: Buffer[] = [];
  #isPaused = false;

  constructor(target: OutputStream) {
    super();
    this.#target = target;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Writes what was kept. */
  async resume(): Promise<void> {
    this.#isPaused = false;
    await write(this.#target, Buffer.concat(this.#kept.splice(0)));
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isPaused) this.#kept.push(chunk);
    void (this.#isPaused ? Promise.resolve() : write(this.#target, chunk)).then(done);
  }
}
