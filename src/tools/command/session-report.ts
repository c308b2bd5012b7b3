import { z } from "zod";
import type { CapturedOutput } from "../../sandbox/index.js";
import { tokenBudget, tokensOfBytes, total, truncateWithLineCount } from "../../sandbox/index.js";
import type { OutputLimit } from "../define-tool.js";
import type { ToolOutput } from "../tool.js";
import type { CommandSession } from "./command-session.js";
import type { CommandSessions } from "./command-sessions.js";

const MIN_YIELD_MS = 250;
const MAX_YIELD_MS = 30_000;
const MIN_POLL_MS = 5000;
export const DEFAULT_MAX_POLL_MS = 300_000;

export const sessionParameters = {
  max_output_tokens: z
    .int()
    .nonnegative()
    .default(10_000)
    .describe("The most output to return; what is over it is cut out of the middle. Default: 10000."),
};

export function clampedYield(yieldMs: number): number {
  return Math.min(Math.max(yieldMs, MIN_YIELD_MS), MAX_YIELD_MS);
}

/** A call that only reads waits longer, so that a model that polls does not waste its turns. */
export function clampedPoll(yieldMs: number, maxPollMs: number): number {
  return Math.min(Math.max(yieldMs, MIN_POLL_MS), Math.max(maxPollMs, MIN_POLL_MS));
}

interface SessionReportOptions {
  startedAt: number;
  maxTokens: number;
  /** Output that was already taken out of the session. Default: what the session has now. */
  output?: CapturedOutput | null | undefined;
}

export interface SessionReportNeeds extends OutputLimit {
  readonly sessions: CommandSessions;
  /** Six lower-case hexadecimal digits. */
  nextChunkId(): string;
}

/** Reports the output since the last report. A session that has ended is reported once and then forgotten. */
export function reportSession(
  needs: SessionReportNeeds,
  session: CommandSession,
  { startedAt, maxTokens, output: takenOutput }: SessionReportOptions,
): ToolOutput {
  const { exit } = session;
  if (exit !== null) needs.sessions.forget(session);
  const wallMs = performance.now() - startedAt;
  const output = takenOutput ?? session.takeOutput();
  const limit = Math.min(maxTokens, tokenBudget(needs.truncation));
  const content = [
    `Chunk ID: ${needs.nextChunkId()}`,
    `Wall time: ${(wallMs / 1000).toFixed(4)} seconds`,
    exit === null
      ? `Process running with session ID ${session.id}`
      : `Process exited with code ${exit.exitCode}`,
    `Original token count: ${tokensOfBytes(total(output, "bytes"))}`,
    "Output:",
    truncateWithLineCount(output, { mode: "tokens", limit }),
  ].join("\n");
  return { content, success: exit === null || exit.exitCode === 0 };
}
