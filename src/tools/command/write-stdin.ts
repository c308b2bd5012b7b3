import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import type { Tool, ToolOutput } from "../tool.js";
import type { CommandSession } from "./command-session.js";
import {
  clampedPoll,
  clampedYield,
  maxTokensOf,
  reportSession,
  type SessionReportNeeds,
  sessionParameters,
} from "./session-report.js";

const DEFAULT_YIELD_MS = 250;
/** Time for a program to react, so that its answer comes with the same call. */
const REACTION_MS = 100;
const CTRL_C = "\u0003";

const parameters = z.object({
  session_id: z.int().describe("The session ID that exec_command returned."),
  chars: z
    .string()
    .optional()
    .describe(
      "What to type, control characters as they are (\\u0003 is ctrl-C). Empty, the default, only reads on.",
    ),
  yield_time_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("How long to wait for output. Default: 250; reading alone waits at least 5000."),
  ...sessionParameters,
});

export interface WriteStdinNeeds extends SessionReportNeeds {
  /** How long one look at a running command may wait without typing, in milliseconds. */
  readonly maxPollMs: number;
}

export function writeStdinTool(needs: WriteStdinNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "write_stdin",
    description:
      "Types into a running command session, or reads on with empty input, and returns the new output.",
    parameters,
    supportsParallel: true,
    // What is typed into one session arrives in the order of the calls.
    orderedBy: ({ session_id }) => `session ${session_id}`,
    async run(args, call) {
      const startedAt = performance.now();
      const session = needs.sessions.find(args.session_id);
      if (session === undefined) return failure(`Unknown process id ${args.session_id}`);
      const chars = args.chars ?? "";
      if (chars !== "") {
        const refusal = await type(session, chars, call.signal);
        if (refusal !== null) return failure(refusal);
      }
      const yieldMs = args.yield_time_ms ?? DEFAULT_YIELD_MS;
      const waitMs = chars === "" ? clampedPoll(yieldMs, needs.maxPollMs) : clampedYield(yieldMs);
      await session.waitForEnd(waitMs, call.signal);
      return reportSession(needs, session, { startedAt, maxTokens: maxTokensOf(args) });
    },
  });
}

/** Null when it was typed, or when the process had ended before, which the report then says. */
async function type(session: CommandSession, chars: string, signal?: AbortSignal): Promise<string | null> {
  if (!session.acceptsInput && chars === CTRL_C) {
    // Only a terminal turns the character into the signal.
    if (session.exit === null) await session.interrupt();
    await sleep(REACTION_MS, undefined, { signal });
    return null;
  }
  if (!session.acceptsInput)
    return "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open";
  const isTyped = session.exit !== null || (await session.write(chars));
  if (!isTyped && session.exit === null) return "failed to write to stdin";
  await sleep(REACTION_MS, undefined, { signal });
  return null;
}

function failure(reason: string) {
  return { content: `write_stdin failed: ${reason}`, success: false };
}
