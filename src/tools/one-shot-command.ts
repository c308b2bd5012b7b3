import type { Readable } from "node:stream";
import { isBrigError } from "../errors.js";
import { type CapturedOutput, captured, keptBytes, renderOutput } from "./captured-output.js";
import { signalError, startError } from "./command-failure.js";
import { type CommandOutcome, withTimeout } from "./command-output.js";
import { OutputCapture } from "./output-capture.js";
import type { ToolExit, ToolProcess } from "./sandbox.js";
import type { ToolCallOptions } from "./tool.js";
import { shrinkOutput } from "./truncation.js";
import type { Workbench } from "./workbench.js";

export interface OneShotCommand {
  argv: readonly string[];
  /** What is shown of the command where it differs from what is run. */
  shownArgv?: readonly string[];
  cwd: string;
  timeoutMs: number;
}

export type OneShotResult = { kind: "ended"; outcome: CommandOutcome } | { kind: "failed"; text: string };

const DEFAULT_TIMEOUT_MS = 10_000;
const OUTPUT_LIMIT_BYTES = 1024 * 1024;
const OUT_OF_MEMORY_NOTICE =
  "\n[the sandbox ran out of memory: the kernel killed a process of this command]\n";

export function timeoutOf(timeoutMs: number | undefined): number {
  return timeoutMs ?? DEFAULT_TIMEOUT_MS;
}

/**
 * Runs a command to its end with no input. Its output is all of stdout, then all of stderr. Of each, and of both together, 1 MiB
 * is kept: the head and the tail, with the amount left out said between them.
 */
export async function runOneShot(
  bench: Workbench,
  command: OneShotCommand,
  call: ToolCallOptions,
): Promise<OneShotResult> {
  const started = await start(bench, command, call);
  if (typeof started === "string") return { kind: "failed", text: started };
  call.onActivity?.({
    kind: "command-started",
    argv: command.shownArgv ?? command.argv,
    cwd: command.cwd,
  });
  const stdout = new OutputCapture(OUTPUT_LIMIT_BYTES);
  const stderr = new OutputCapture(OUTPUT_LIMIT_BYTES);
  const exit = await follow(started, { stdout, stderr }, call);
  const output = aggregate(stdout.take(), stderr.take(), exit);
  report(exit, output, call);
  return resultOf(exit, output);
}

async function start(
  bench: Workbench,
  { argv, cwd, timeoutMs }: OneShotCommand,
  { signal }: ToolCallOptions,
): Promise<ToolProcess | string> {
  const sandbox = await bench.sandbox();
  try {
    return await sandbox.spawn(argv, { cwd, env: bench.environment, timeoutMs, signal, stdin: "closed" });
  } catch (error) {
    if (isBrigError(error, "exec.bad-cwd")) return startError(error.message, 127);
    if (isBrigError(error, "exec.invalid")) return startError(error.message, 1);
    throw error;
  }
}

/** Resolves when the command has ended and everything it printed is captured. */
async function follow(
  command: ToolProcess,
  captures: { stdout: OutputCapture; stderr: OutputCapture },
  call: ToolCallOptions,
): Promise<ToolExit> {
  try {
    const [exit] = await Promise.all([
      command.exit,
      read(command.stdout, captures.stdout, call),
      read(command.stderr, captures.stderr, call),
    ]);
    call.signal?.throwIfAborted();
    return exit;
  } catch (error) {
    // The streams of an aborted command end with errors of their own.
    call.signal?.throwIfAborted();
    throw error;
  }
}

async function read(stream: Readable | null, capture: OutputCapture, call: ToolCallOptions): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    capture.push(chunk);
    call.onActivity?.({ kind: "command-output", chunk });
  }
}

/** One third of the limit is for stdout, two for stderr, and each may use what the other leaves. */
function aggregate(stdout: CapturedOutput, stderr: CapturedOutput, exit: ToolExit): CapturedOutput {
  const stderrShare = Math.min(keptBytes(stderr), OUTPUT_LIMIT_BYTES - Math.floor(OUTPUT_LIMIT_BYTES / 3));
  const stderrBytes = Math.max(
    stderrShare,
    Math.min(keptBytes(stderr), OUTPUT_LIMIT_BYTES - keptBytes(stdout)),
  );
  const output = captured(
    shrinkOutput(stdout, OUTPUT_LIMIT_BYTES - stderrBytes),
    shrinkOutput(stderr, stderrBytes),
  );
  return exit.outOfMemory ? captured(output, OUT_OF_MEMORY_NOTICE) : output;
}

function report(exit: ToolExit, output: CapturedOutput, call: ToolCallOptions): void {
  call.onActivity?.({
    kind: "command-ended",
    exitCode: exit.exitCode,
    output: renderOutput(withTimeout({ ...exit, output })),
    durationMs: exit.durationMs,
    usage: exit.usage,
  });
}

function resultOf(exit: ToolExit, output: CapturedOutput): OneShotResult {
  if (exit.startFailure !== null)
    return { kind: "failed", text: startError(exit.startFailure, exit.exitCode) };
  if (exit.signal !== null && !exit.timedOut)
    return { kind: "failed", text: signalError(exit.signal, renderOutput(output)) };
  const { exitCode, timedOut, durationMs } = exit;
  return { kind: "ended", outcome: { exitCode, timedOut, durationMs, output } };
}
