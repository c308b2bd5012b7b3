import type { Readable } from "node:stream";
import { type CapturedOutput, captured, keptBytes, renderOutput } from "./captured-output.js";
import { endOf, refusedStart, signalError, startError } from "./command-failure.js";
import { type CommandOutcome, withTimeout } from "./command-output.js";
import { OutputCapture } from "./output-capture.js";
import type { ToolExit } from "./sandbox.js";
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
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;
const OUTPUT_LIMIT_BYTES = 1024 * 1024;
const OUT_OF_MEMORY_NOTICE =
  "\n[the sandbox ran out of memory: the kernel killed a process of this command]\n";

/** No command of a model's runs for ever: 0 is over at once, and nothing is longer than a day. */
export function timeoutOf(timeoutMs: number | undefined): number {
  return Math.min(Math.max(timeoutMs ?? DEFAULT_TIMEOUT_MS, 1), MAX_TIMEOUT_MS);
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
  call.onActivity?.({
    kind: "command-started",
    argv: command.shownArgv ?? command.argv,
    cwd: command.cwd,
  });
  const stdout = new OutputCapture(OUTPUT_LIMIT_BYTES);
  const stderr = new OutputCapture(OUTPUT_LIMIT_BYTES);
  const exit = await runToEnd(bench, command, { call, stdout, stderr });
  call.signal?.throwIfAborted();
  const output = aggregate(stdout.take(), stderr.take(), exit);
  report(exit, output, call);
  return resultOf(exit, output);
}

async function runToEnd(
  bench: Workbench,
  { argv, cwd, timeoutMs }: OneShotCommand,
  { call, stdout, stderr }: { call: ToolCallOptions; stdout: OutputCapture; stderr: OutputCapture },
): Promise<ToolExit> {
  const sandbox = await bench.sandbox();
  const { signal } = call;
  try {
    const options = { cwd, env: bench.environment, timeoutMs, signal, stdin: "closed" as const };
    const process = await sandbox.spawn(argv, options);
    const reading = Promise.all([read(process.stdout, stdout, call), read(process.stderr, stderr, call)]);
    return await endOf(process, reading);
  } catch (error) {
    signal?.throwIfAborted();
    return refusedStart(error);
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
    output: exit.startFailure ?? renderOutput(withTimeout({ ...exit, output })),
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
