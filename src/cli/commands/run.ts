import { stat, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Command, Option } from "commander";
import { JsonEvents } from "../../agent/jsonl-events.js";
import { type AgentResult, runAgent } from "../../agent/run-agent.js";
import type { AgentEvent } from "../../agent/turn/events.js";
import { BrigError } from "../../errors.js";
import { jsonText } from "../../lib/json-text.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import type { SessionLog } from "../../session/write/session-file.js";
import type { CliContext } from "../context.js";
import { CONVERSE, canConverse } from "../conversation/can-converse.js";
import { startConversation } from "../conversation/start-conversation.js";
import { HeldOutput } from "../display/held-output.js";
import { showRun } from "../display/run-display.js";
import { exitStatusOf } from "../exit-status.js";
import { say, write } from "../render.js";
import { type AgentFlags, addAgentOptions } from "../setup/agent-flags.js";
import { type AgentUse, type EarlierSession, prepareAgent } from "../setup/agent-setup.js";
import { readImages, readPrompt } from "../setup/run-input.js";
import { flaggedSettings } from "../setup/sandbox-flags.js";
import { canAsk } from "../setup/tool-settings.js";

export interface RunFlags extends AgentFlags {
  json?: boolean;
  outputLastMessage?: string;
  converse?: boolean;
}

export function defineRun(command: Command, context: CliContext): void {
  addRunOptions(command)
    .addOption(new Option(CONVERSE).hideHelp())
    .argument("[prompt]", "what to do; without it, or with -, it is read from standard input")
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
    .option("--json", "print events as JSON, one to a line, and nothing else on stdout")
    .option("-o, --output-last-message <file>", "write the final message to a file as well");
}

/** Whether what is asked without a prompt is a conversation. A program wants one result. */
export function wantsConversation({ json, outputLastMessage }: RunFlags, context: CliContext): boolean {
  return json !== true && outputLastMessage === undefined && canConverse(context);
}

export interface RunUse {
  context: CliContext;
  /** The session that goes on; whoever opened it closes it. Default: a new one. */
  earlier?: EarlierSession | undefined;
}

/** One turn, from the prompt to its result. */
export async function runCommand(argument: string | undefined, flags: RunFlags, use: RunUse): Promise<void> {
  const { result, session } = await runSession(argument, flags, use);
  await finish(result, { flags, context: use.context, session });
}

async function runSession(
  argument: string | undefined,
  flags: RunFlags,
  { context, earlier }: RunUse,
): Promise<{ result: AgentResult; session: SessionLog | undefined }> {
  // What the words of the flags tell is said before anything is read.
  flaggedSettings(flags, context);
  await checkPlace(flags, context);
  const prompt = await readPrompt(argument, context);
  const images = await readImages(flags.image ?? [], context);
  const person = canAsk(context) ? await personAtTerminal(context) : {};
  const notes = new HeldOutput(context.stderr);
  const aside = { ...context, stderr: notes };
  const { options } = await prepareAgent(flags, aside, { hasManyTurns: false, ...person, earlier });
  const onEvent = createListener(flags, context);
  notes.hold();
  try {
    const result = await runAgent({ ...options, prompt, images, signal: context.signal, onEvent });
    return { result, session: options.session };
  } finally {
    await notes.release();
  }
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

/** Loaded only where there is somebody: what lays text out knows all of Unicode. */
async function personAtTerminal(context: CliContext): Promise<Pick<AgentUse, "user" | "approver">> {
  const [{ terminalUser }, { terminalApprover }, { askInTurn }] = await Promise.all([
    import("../questions/ask-user.js"),
    import("../questions/ask-approval.js"),
    import("../questions/ask-in-turn.js"),
  ]);
  return askInTurn({
    user: terminalUser(context),
    approver: terminalApprover(context, { usesColour: usesColour(context) }),
  });
}

function usesColour({ stderr, environment }: CliContext): boolean {
  return stderr.isTTY === true && !environment.forbidsColor && !environment.isContinuousIntegration;
}

async function finish(
  result: AgentResult,
  { flags, context, session }: { flags: RunFlags; context: CliContext; session: SessionLog | undefined },
): Promise<void> {
  if (flags.json !== true) await say(context.stderr, summary(result));
  const trouble = session?.trouble ?? null;
  if (trouble !== null) await say(context.stderr, `brig: ${neutralise(trouble)}\n`);
  if (result.status === "interrupted") {
    // Without a signal it was the answer to a question.
    const ended = new BrigError("the turn was ended", { code: "aborted" });
    if (flags.json !== true) throw context.signal.reason ?? ended;
    context.setExitStatus(context.interruption()?.exitStatus ?? 130);
    return;
  }
  if (result.error !== undefined) {
    if (flags.json !== true) throw result.error;
    context.setExitStatus(exitStatusOf(result.error));
    return;
  }
  await deliver(result.lastMessage ?? "", flags, context);
}

/** A message that cannot be written to the file is not lost: it is printed before. */
async function deliver(message: string, flags: RunFlags, context: CliContext): Promise<void> {
  await print(message, flags, context);
  if (flags.outputLastMessage === undefined) return;
  if (message === "") await say(context.stderr, "brig: there was no final message: the file is empty\n");
  await writeMessage(resolve(context.cwd, flags.outputLastMessage), message);
}

async function print(message: string, flags: RunFlags, context: CliContext): Promise<void> {
  if (flags.json === true || message === "") return;
  const text = message.endsWith("\n") ? message : `${message}\n`;
  // What reads a pipe may show it, as the log of a CI job does; there is no more to a text for it than its characters.
  await write(context.stdout, neutralise(text, { keepsInvisible: context.stdout.isTTY !== true }));
}

/** Where there is no place for the final message nothing is begun. */
async function checkPlace({ outputLastMessage }: RunFlags, { cwd }: CliContext): Promise<void> {
  if (outputLastMessage === undefined) return;
  const file = resolve(cwd, outputLastMessage);
  const isDirectory = async (path: string) => (await stat(path).catch(() => null))?.isDirectory() === true;
  if ((await isDirectory(dirname(file))) && !(await isDirectory(file))) return;
  throw new BrigError(`the final message cannot be written to ${file}`, {
    code: "usage.invalid",
    hint: "--output-last-message takes a file in a directory that is there",
  });
}

async function writeMessage(file: string, message: string): Promise<void> {
  try {
    await writeFile(file, message);
  } catch (cause) {
    throw new BrigError(`the final message cannot be written to ${file}`, { code: "usage.invalid", cause });
  }
}

function summary({ toolCalls, callLatenciesMs, usage, sessionFile }: AgentResult): string {
  const median = medianOf(callLatenciesMs);
  const parts = [
    `${toolCalls} tool ${toolCalls === 1 ? "call" : "calls"}`,
    ...(median === null ? [] : [`median ${formatDuration(median)}`]),
    ...(usage.inputTokens === 0 ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
  ];
  return `${parts.join(" · ")}\nsession file ${sessionFile ?? "none"}\n`;
}

function medianOf(numbers: readonly number[]): number | null {
  const sorted = numbers.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  return upper === undefined || lower === undefined ? null : (upper + lower) / 2;
}
