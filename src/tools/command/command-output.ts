import { type CapturedOutput, captured, countLines, total } from "../../output/captured-output.js";
import {
  type TruncationPolicy,
  tokenBudget,
  tokensOfBytes,
  truncateOutput,
  truncateWithLineCount,
} from "../../output/truncation.js";

/** Added to the output of a command that nothing may outlive, where something would have. */
export const TREE_ENDED =
  "\n[what it left running was ended: outside the sandbox nothing goes on after its command]\n";

/** How a one-shot command ended. */
export interface CommandOutcome {
  exitCode: number;
  timedOut: boolean;
  durationMs: number;
  output: CapturedOutput;
}

/** What there is to say about a command session after one call. */
export interface SessionReport {
  /** Six lower-case hexadecimal digits. */
  chunkId: string;
  wallMs: number;
  /** Null while the process runs. */
  exitCode: number | null;
  /** Null when the session is over. */
  sessionId: number | null;
  output: CapturedOutput;
}

/** The JSON that `shell` answers with. The duration always has one decimal, as models have seen it. */
export function structuredOutput(outcome: CommandOutcome, policy: TruncationPolicy): string {
  const text = truncateWithLineCount(withTimeout(outcome), policy);
  const seconds = roundedSeconds(outcome.durationMs).toFixed(1);
  return `{"output":${JSON.stringify(text)},"metadata":{"exit_code":${outcome.exitCode},"duration_seconds":${seconds}}}`;
}

/** The sections that `shell_command` answers with. */
export function freeformOutput(outcome: CommandOutcome, policy: TruncationPolicy): string {
  const whole = withTimeout(outcome);
  const text = truncateOutput(whole, policy);
  const lines = countLines(whole);
  return [
    `Exit code: ${outcome.exitCode}`,
    `Wall time: ${roundedSeconds(outcome.durationMs)} seconds`,
    ...(lines === countLines(captured(text)) ? [] : [`Total output lines: ${lines}`]),
    "Output:",
    text,
  ].join("\n");
}

/** The sections that `exec_command` and `write_stdin` answer with. */
export function sessionOutput(report: SessionReport, policy: TruncationPolicy, maxTokens: number): string {
  const limit = Math.min(maxTokens, tokenBudget(policy));
  return [
    `Chunk ID: ${report.chunkId}`,
    `Wall time: ${(report.wallMs / 1000).toFixed(4)} seconds`,
    ...(report.exitCode === null ? [] : [`Process exited with code ${report.exitCode}`]),
    ...(report.sessionId === null ? [] : [`Process running with session ID ${report.sessionId}`]),
    `Original token count: ${tokensOfBytes(total(report.output, "bytes"))}`,
    "Output:",
    truncateWithLineCount(report.output, { mode: "tokens", limit }),
  ].join("\n");
}

export function withTimeout({ timedOut, durationMs, output }: CommandOutcome): CapturedOutput {
  if (!timedOut) return output;
  return captured(`command timed out after ${Math.trunc(durationMs)} milliseconds\n`, output);
}

function roundedSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
