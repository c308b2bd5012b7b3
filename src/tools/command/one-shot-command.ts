import { z } from "zod";
import type { CapturedOutput, TruncationPolicy } from "../../sandbox/index.js";
import {
  captured,
  KEPT_OUTPUT_BYTES,
  keptBytes,
  OutputCapture,
  renderOutput,
  shrinkOutput,
} from "../../sandbox/index.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/apply-patch-tool.js";
import type { EscalationRequest, SandboxPlace } from "../review/action.js";
import { type Attempt, denialFinder, RETRY_DECLINED, runReviewed } from "../review/reviewed-action.js";
import type { ToolCallOptions, ToolOutput } from "../tool.js";
import { failure } from "../tool-failure.js";
import { type CommandEnvironment, environmentIn, type OutputLimit } from "../tool-needs.js";
import type { ToolExit } from "../tool-sandbox.js";
import { signalError, startError } from "./command-failure.js";
import { type CommandOutcome, causeNotice, TREE_ENDED, withTimeout } from "./command-output.js";
import { adviseOfMissingProgram, type MissingProgramNeeds } from "./missing-programs.js";
import { runProcess } from "./run-process.js";

export interface OneShotCommand {
  /** The tool that the model called. */
  tool: string;
  argv: readonly string[];
  /** What people are shown instead of `argv`. */
  shownArgv: readonly string[];
  cwd: string;
  timeoutMs: number;
  escalation: EscalationRequest;
}

export interface OneShotNeeds
  extends CommandEnvironment,
    OutputLimit,
    MissingProgramNeeds,
    PatchInterceptionNeeds {}

type OneShotResult = { kind: "ended"; outcome: CommandOutcome } | { kind: "failed"; text: string };

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

export const oneShotParameters = {
  workdir: z.string().optional().describe("Directory to run in. Default: the session's."),
  timeout_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("The command is killed after so many milliseconds. Default: 10000."),
};

/** A model's command always has a time limit: at least 1 ms, since 0 would mean none, and at most a day. */
export function timeoutOf(timeoutMs: number | undefined): number {
  return Math.min(Math.max(timeoutMs ?? DEFAULT_TIMEOUT_MS, 1), MAX_TIMEOUT_MS);
}

/** Runs a command once it is approved, or applies the patch if it does nothing but that. */
export async function runOneShot(
  needs: OneShotNeeds,
  command: OneShotCommand,
  {
    call,
    format,
  }: { call: ToolCallOptions; format: (outcome: CommandOutcome, policy: TruncationPolicy) => string },
): Promise<ToolOutput> {
  const { tool, shownArgv: argv, cwd, escalation } = command;
  const patched = await interceptPatch(needs, { tool, argv, cwd }, call);
  if (patched !== null) return patched;
  const reviewed = await runReviewed(
    needs.review,
    {
      action: { kind: "command", tool, argv, cwd, takesInput: false, escalation },
      attempt: (place) => attempt(needs, { ...command, place }, call),
    },
    call,
  );
  if (reviewed.kind === "refused") {
    const reason = reviewed.reason.by === "user" ? "exec command rejected by user" : reviewed.reason.text;
    call.onActivity?.({ kind: "command-declined", argv, cwd, reason });
    return failure(reason);
  }
  const note = reviewed.isRetryDeclined ? RETRY_DECLINED : "";
  const result = reviewed.outcome;
  if (result.kind === "failed") return failure(result.text + note);
  const outcome = { ...result.outcome, output: captured(result.outcome.output, note) };
  return { content: format(outcome, needs.truncation), success: outcome.exitCode === 0 };
}

/**
 * The output is all of stdout, then all of stderr. Of each, and of both together, 1 MiB is kept: the head and
 * the tail, with the number of omitted bytes between them.
 */
async function attempt(
  needs: OneShotNeeds,
  { argv, shownArgv, cwd, timeoutMs, place }: OneShotCommand & { place: SandboxPlace },
  call: ToolCallOptions,
): Promise<Attempt<OneShotResult>> {
  call.onActivity?.({ kind: "command-started", argv: shownArgv, cwd });
  const sandbox = await needs.sandbox(place);
  const stdout = new OutputCapture();
  const stderr = new OutputCapture();
  const into = (capture: OutputCapture) => (chunk: Uint8Array) => {
    capture.push(chunk);
    call.onActivity?.({ kind: "command-output", chunk });
  };
  const { signal, origin } = call;
  const env = environmentIn(needs, place);
  const options = { argv, cwd, env, timeoutMs, signal, callId: origin?.callId };
  const exit = await runProcess(sandbox, options, { stdout: into(stdout), stderr: into(stderr) });
  const output = aggregate(stdout.take(), stderr.take(), exit);
  call.onActivity?.({
    kind: "command-ended",
    exitCode: exit.exitCode,
    output: exit.startFailure?.message ?? renderOutput(withTimeout({ ...exit, output })),
    causes: exit.causes,
    durationMs: exit.durationMs,
    usage: exit.usage,
  });
  const text = renderOutput(output);
  await adviseOfMissingProgram(needs, { ...exit, argv, output: text }, call);
  return { outcome: resultOf(exit, output), findDenial: denialFinder(exit, text) };
}

/** One third of the limit is for stdout and two thirds for stderr; each may use what the other leaves. */
function aggregate(stdout: CapturedOutput, stderr: CapturedOutput, exit: ToolExit): CapturedOutput {
  const stderrShare = KEPT_OUTPUT_BYTES - Math.min(keptBytes(stdout), Math.floor(KEPT_OUTPUT_BYTES / 3));
  const stderrBytes = Math.min(keptBytes(stderr), stderrShare);
  return captured(
    shrinkOutput(stdout, KEPT_OUTPUT_BYTES - stderrBytes),
    shrinkOutput(stderr, stderrBytes),
    causeNotice(exit.causes),
    exit.treeEnded ? TREE_ENDED : "",
  );
}

function resultOf(exit: ToolExit, output: CapturedOutput): OneShotResult {
  if (exit.startFailure !== null) return { kind: "failed", text: startError(exit.startFailure) };
  if (exit.signal !== null && !exit.timedOut)
    return { kind: "failed", text: signalError(exit.signal, renderOutput(output)) };
  const { exitCode, timedOut, durationMs } = exit;
  return { kind: "ended", outcome: { exitCode, timedOut, durationMs, output } };
}
