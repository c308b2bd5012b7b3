import { z } from "zod";
import type { CapturedOutput } from "../../output/captured-output.js";
import type { ToolOutput } from "../tool.js";
import type { OutputLimit } from "../tool-needs.js";
import { sessionOutput } from "./command-output.js";
import type { CommandSession } from "./command-session.js";
import type { CommandSessions } from "./command-sessions.js";

const DEFAULT_MAX_TOKENS = 10_000;
const MIN_YIELD_MS = 250;
const MAX_YIELD_MS = 30_000;
const MIN_POLL_MS = 5000;
/** The most, unless it is configured. */
export const MAX_POLL_MS = 300_000;

export const sessionParameters = {
  max_output_tokens: z
    .int()
    .nonnegative()
    .optional()
    .describe("The most output to return; what is over it is cut out of the middle. Default: 10000."),
};

export function maxTokensOf(args: { max_output_tokens?: number | undefined }): number {
  return args.max_output_tokens ?? DEFAULT_MAX_TOKENS;
}

export function clampedYield(yieldMs: number): number {
  return Math.min(Math.max(yieldMs, MIN_YIELD_MS), MAX_YIELD_MS);
}

/** Reading on without typing waits longer: a model that polls would else spend its turns on nothing. */
export function clampedPoll(yieldMs: number, maxPollMs: number): number {
  return Math.min(Math.max(yieldMs, MIN_POLL_MS), Math.max(maxPollMs, MIN_POLL_MS));
}

interface SessionReportOptions {
  startedAt: number;
  maxTokens: number;
  /** What was taken out of the session already. Default: what it has now. */
  output?: CapturedOutput | null | undefined;
}

export interface SessionReportNeeds extends OutputLimit {
  readonly sessions: CommandSessions;
  /** Six hexadecimal digits that tell one output from another. */
  nextChunkId(): string;
}

/** What a session did since the last report. A session that has ended is reported once and then forgotten. */
export function reportSession(
  needs: SessionReportNeeds,
  session: CommandSession,
  { startedAt, maxTokens, output }: SessionReportOptions,
): ToolOutput {
  const { exit } = session;
  if (exit !== null) needs.sessions.forget(session);
  const report = {
    chunkId: needs.nextChunkId(),
    wallMs: performance.now() - startedAt,
    exitCode: exit?.exitCode ?? null,
    sessionId: exit === null ? session.id : null,
    output: output ?? session.takeOutput(),
  };
  return {
    content: sessionOutput(report, needs.truncation, maxTokens),
    success: exit === null || exit.exitCode === 0,
  };
}
