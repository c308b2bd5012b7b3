import type { CallCause, CapturedOutput, TruncationPolicy } from "../../sandbox/index.js";
import {
  captured,
  causeSentences,
  countLines,
  truncateOutput,
  truncateWithLineCount,
} from "../../sandbox/index.js";

/** Added to the output of a command outside the sandbox that left processes running. */
export const TREE_ENDED =
  "\n[what it left running was ended: outside the sandbox nothing goes on after its command]\n";

/** Added to the output of a command that failed, if it is known why. May be empty. */
export function causeNotice(causes: readonly CallCause[] = []): string {
  const sentences = causeSentences(causes);
  return sentences.length === 0 ? "" : `\n[${sentences.join(";\n")}]\n`;
}

interface Ended {
  exitCode: number;
  durationMs: number;
}

export interface CommandOutcome extends Ended {
  timedOut: boolean;
  output: CapturedOutput;
}

/** The output of `shell`. */
export function structuredOutput(outcome: CommandOutcome, policy: TruncationPolicy): string {
  return jsonOutput(outcome, truncateWithLineCount(withTimeout(outcome), policy));
}

/** The output of `shell_command`. */
export function freeformOutput(outcome: CommandOutcome, policy: TruncationPolicy): string {
  const whole = withTimeout(outcome);
  const text = truncateOutput(whole, policy);
  const lines = countLines(whole);
  const isCut = lines !== countLines(captured(text));
  return sectionedOutput(outcome, text, isCut ? [`Total output lines: ${lines}`] : []);
}

/** The duration always has one decimal, as in Codex's output. */
export function jsonOutput({ exitCode, durationMs }: Ended, text: string): string {
  const seconds = roundedSeconds(durationMs).toFixed(1);
  return `{"output":${JSON.stringify(text)},"metadata":{"exit_code":${exitCode},"duration_seconds":${seconds}}}`;
}

export function sectionedOutput(
  { exitCode, durationMs }: Ended,
  text: string,
  notes: readonly string[] = [],
): string {
  const seconds = roundedSeconds(durationMs);
  return [`Exit code: ${exitCode}`, `Wall time: ${seconds} seconds`, ...notes, "Output:", text].join("\n");
}

export function withTimeout({ timedOut, durationMs, output }: CommandOutcome): CapturedOutput {
  if (!timedOut) return output;
  return captured(`command timed out after ${Math.trunc(durationMs)} milliseconds\n`, output);
}

function roundedSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
