import { type CapturedOutput, captured, keptBytes, renderOutput } from "../../output/captured-output.js";
import { KEPT_OUTPUT_BYTES, OutputCapture } from "../../output/output-capture.js";
import { shrinkOutput } from "../../output/truncation.js";
import { findDenial } from "../../policy/sandbox-denial.js";
import type { EscalationRequest, SandboxPlace } from "../review/action.js";
import { type Attempt, doReviewed, failed, RETRY_DECLINED } from "../review/reviewed-action.js";
import type { ToolCallOptions } from "../tool.js";
import { type CommandEnvironment, environmentIn, type Reviewed, type SandboxAccess } from "../tool-needs.js";
import type { ToolExit } from "../tool-sandbox.js";
import { endOf, refusedStart, signalError, startError } from "./command-failure.js";
import { type CommandOutcome, TREE_ENDED, withTimeout } from "./command-output.js";
import { eachChunk } from "./each-chunk.js";
import { adviseOfMissing, type MissingProgramNeeds } from "./missing-programs.js";

export interface OneShotCommand {
  argv: readonly string[];
  /** What is shown of the command where it differs from what is run. */
  shownArgv?: readonly string[];
  cwd: string;
  timeoutMs: number;
}

export interface OneShotNeeds extends SandboxAccess, CommandEnvironment, Reviewed, MissingProgramNeeds {}

/** How a command ended, or why it did not. */
type ReviewedOneShot = OneShotResult | { kind: "refused"; text: string };

type OneShotResult = { kind: "ended"; outcome: CommandOutcome } | { kind: "failed"; text: string };

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;
const OUT_OF_MEMORY_NOTICE =
  "\n[the sandbox ran out of memory: the kernel killed a process of this command]\n";

/** No command of a model's runs for ever: 0 is over at once, and nothing is longer than a day. */
export function timeoutOf(timeoutMs: number | undefined): number {
  return Math.min(Math.max(timeoutMs ?? DEFAULT_TIMEOUT_MS, 1), MAX_TIMEOUT_MS);
}

/** As `runOneShot`, once it is approved, and a second time with full access where that is approved. */
export async function runReviewed(
  needs: OneShotNeeds,
  { tool, escalation, ...command }: OneShotCommand & { tool: string; escalation: EscalationRequest },
  call: ToolCallOptions,
): Promise<ReviewedOneShot> {
  const { cwd } = command;
  const argv = command.shownArgv ?? command.argv;
  const reviewed = await doReviewed(
    needs.review,
    {
      action: { kind: "command", tool, argv, cwd, takesInput: false, escalation },
      attempt: (place) => runOneShot(needs, { ...command, place }, call),
    },
    call,
  );
  if (reviewed.kind === "refused") {
    const text = reviewed.reason.by === "user" ? "exec command rejected by user" : reviewed.reason.text;
    call.onActivity?.({ kind: "command-declined", argv, cwd, reason: text });
    return { kind: "refused", text };
  }
  return reviewed.isRetryDeclined ? withNote(reviewed.outcome) : reviewed.outcome;
}

function withNote(result: OneShotResult): OneShotResult {
  if (result.kind === "failed") return { kind: "failed", text: result.text + RETRY_DECLINED };
  const { outcome } = result;
  return { kind: "ended", outcome: { ...outcome, output: captured(outcome.output, RETRY_DECLINED) } };
}

/**
 * Runs a command to its end with no input. Its output is all of stdout, then all of stderr. Of each, and of both together, 1 MiB
 * is kept: the head and the tail, with the amount left out said between them.
 */
async function runOneShot(
  needs: OneShotNeeds,
  command: OneShotCommand & { place: SandboxPlace },
  call: ToolCallOptions,
): Promise<Attempt<OneShotResult>> {
  call.onActivity?.({
    kind: "command-started",
    argv: command.shownArgv ?? command.argv,
    cwd: command.cwd,
  });
  const stdout = new OutputCapture();
  const stderr = new OutputCapture();
  const exit = await runToEnd(needs, command, { call, stdout, stderr });
  call.signal?.throwIfAborted();
  const output = aggregate(stdout.take(), stderr.take(), exit);
  report(exit, output, call);
  await adviseOfMissing(needs, { ...exit, argv: command.argv, output: renderOutput(output) }, call);
  return {
    outcome: resultOf(exit, output),
    findDenial: failed(exit)
      ? (sandbox) => findDenial({ ...exit, output: renderOutput(output) }, sandbox)
      : null,
  };
}

async function runToEnd(
  needs: SandboxAccess & CommandEnvironment,
  { argv, cwd, timeoutMs, place }: OneShotCommand & { place: SandboxPlace },
  { call, stdout, stderr }: { call: ToolCallOptions; stdout: OutputCapture; stderr: OutputCapture },
): Promise<ToolExit> {
  const sandbox = await needs.sandbox(place);
  const { signal } = call;
  try {
    const options = { cwd, env: environmentIn(needs, place), timeoutMs, signal, stdin: "closed" as const };
    const process = await sandbox.spawn(argv, options);
    const into = (capture: OutputCapture) => (chunk: Uint8Array) => {
      capture.push(chunk);
      call.onActivity?.({ kind: "command-output", chunk });
    };
    const reading = Promise.all([
      eachChunk(process.stdout, into(stdout)),
      eachChunk(process.stderr, into(stderr)),
    ]);
    return await endOf(process, reading);
  } catch (error) {
    signal?.throwIfAborted();
    return refusedStart(error);
  }
}

/** One third of the limit is for stdout, two for stderr, and each may use what the other leaves. */
function aggregate(stdout: CapturedOutput, stderr: CapturedOutput, exit: ToolExit): CapturedOutput {
  const stderrShare = Math.min(keptBytes(stderr), KEPT_OUTPUT_BYTES - Math.floor(KEPT_OUTPUT_BYTES / 3));
  const stderrBytes = Math.max(
    stderrShare,
    Math.min(keptBytes(stderr), KEPT_OUTPUT_BYTES - keptBytes(stdout)),
  );
  const output = captured(
    shrinkOutput(stdout, KEPT_OUTPUT_BYTES - stderrBytes),
    shrinkOutput(stderr, stderrBytes),
  );
  return captured(
    output,
    ...(exit.outOfMemory ? [OUT_OF_MEMORY_NOTICE] : []),
    ...(exit.treeEnded ? [TREE_ENDED] : []),
  );
}

function report(exit: ToolExit, output: CapturedOutput, call: ToolCallOptions): void {
  call.onActivity?.({
    kind: "command-ended",
    exitCode: exit.exitCode,
    output: exit.startFailure?.message ?? renderOutput(withTimeout({ ...exit, output })),
    durationMs: exit.durationMs,
    usage: exit.usage,
  });
}

function resultOf(exit: ToolExit, output: CapturedOutput): OneShotResult {
  if (exit.startFailure !== null) return { kind: "failed", text: startError(exit.startFailure) };
  if (exit.signal !== null && !exit.timedOut)
    return { kind: "failed", text: signalError(exit.signal, renderOutput(output)) };
  const { exitCode, timedOut, durationMs } = exit;
  return { kind: "ended", outcome: { exitCode, timedOut, durationMs, output } };
}
