import { StringDecoder } from "node:string_decoder";
import { createProgress, type Progress } from "../lib/terminal/progress.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import type { Sandbox, SetupEnd } from "../sandbox/index.js";
import { runSetup, setupFailure } from "../sandbox/index.js";
import type { CliContext } from "./context.js";
import { commandDirectory, type SandboxFlags } from "./flags/sandbox-flags.js";
import { receiptText } from "./receipt-text.js";
import { flush, say } from "./render.js";

/** Lines are cut to this length, because nobody reads a longer line of progress to its end. */
const MAX_LINE_CHARS = 1000;

interface FlaggedSetup {
  flags: SandboxFlags;
  /** Whether stderr gets the output of the set-up even if it is no terminal. On a terminal it shows one line at a time. */
  printsOutput: boolean;
}

/**
 * Runs the command of `--setup`, and shows on stderr what it prints while it runs. Error: `setup.failed`, after which nothing
 * else may run in the sandbox.
 */
export async function runFlaggedSetup(
  sandbox: Sandbox,
  { flags, printsOutput }: FlaggedSetup,
  { stderr, signal, environment }: CliContext,
): Promise<SetupEnd> {
  const progress =
    stderr.isTTY === true || printsOutput
      ? createProgress(stderr, { usesColour: !environment.forbidsColor })
      : null;
  progress?.step("setting up the sandbox");
  const lines = new ProgressLines(progress, { stderr, signal });
  try {
    const ended = await runSetup(sandbox, { cwd: commandDirectory(flags), signal, onOutput: lines.push });
    lines.end();
    const failure = setupFailure(ended);
    if (failure !== null) throw failure;
    return ended;
  } finally {
    progress?.close();
  }
}

/**
 * Does the same before a program that takes over the terminal. If the set-up fails or is interrupted, its remains are
 * reported before the error.
 */
export async function setUpBeforeTerminal(
  sandbox: Sandbox,
  flags: SandboxFlags,
  context: CliContext,
): Promise<void> {
  try {
    await runFlaggedSetup(sandbox, { flags, printsOutput: true }, context);
  } catch (error) {
    const left = await sandbox.close().catch(() => null);
    if (left !== null) await say(context.stderr, receiptText(left)).catch(() => undefined);
    throw error;
  }
}

/** Shows the lines of both streams of a set-up. A progress bar counts as a line each time it is drawn. */
class ProgressLines {
  readonly #context: Pick<CliContext, "stderr" | "signal">;
  readonly #progress: Progress | null;
  readonly #decoder = new StringDecoder("utf8");
  #unfinished = "";

  constructor(progress: Progress | null, context: Pick<CliContext, "stderr" | "signal">) {
    this.#progress = progress;
    this.#context = context;
  }

  /** The set-up waits until its output is taken, so that one that prints without end fills no memory. */
  readonly push = async (chunk: Uint8Array): Promise<void> => {
    if (this.#progress === null) return;
    const { stderr, signal } = this.#context;
    const pieces = (this.#unfinished + this.#decoder.write(Buffer.from(chunk))).split(/[\r\n]+/);
    this.#unfinished = (pieces.pop() ?? "").slice(0, MAX_LINE_CHARS);
    // On a terminal each line replaces the one before it.
    this.#show(stderr.isTTY === true ? pieces.slice(-1) : pieces);
    await beforeAbort(flush(stderr), signal).catch(() => undefined);
  };

  end(): void {
    this.#show([this.#unfinished + this.#decoder.end()]);
  }

  #show(lines: readonly string[]): void {
    for (const line of lines)
      if (line.trim() !== "") this.#progress?.step(`setting up: ${line.slice(0, MAX_LINE_CHARS)}`);
  }
}
