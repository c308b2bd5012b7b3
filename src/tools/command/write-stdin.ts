import { z } from "zod";
import { pause } from "../../lib/time/pause.js";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { failure, type Tool, type ToolOutput } from "../tool.js";
import type { CommandSession } from "./command-session.js";
import {
  clampedPoll,
  clampedYield,
  reportSession,
  type SessionReportNeeds,
  sessionParameters,
} from "./session-report.js";

/** The time that a program gets to react to its input, so that the same call returns its answer. */
const REACTION_MS = 100;
const CTRL_C = "\u0003";

const parameters = z.object({
  session_id: z.int().describe("The session ID that exec_command returned."),
  chars: z
    .string()
    .default("")
    .describe(
      "What to type, control characters as they are (\\u0003 is ctrl-C). Empty, the default, only reads on.",
    ),
  yield_time_ms: z
    .int()
    .nonnegative()
    .default(250)
    .describe("How long to wait for output. Default: 250; reading alone waits at least 5000."),
  ...sessionParameters,
});

export interface WriteStdinNeeds extends SessionReportNeeds {
  /** The longest that a call without input waits. */
  readonly maxPollMs: number;
}

export function writeStdinTool(needs: WriteStdinNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "write_stdin",
    description:
      "Types into a running command session, or reads on with empty input, and returns the new output.",
    parameters,
    supportsParallel: true,
    // The input for a session must arrive in the order of the calls.
    orderedBy: ({ session_id }) => `session ${session_id}`,
    async run({ session_id, chars, yield_time_ms: yieldMs, max_output_tokens: maxTokens }, call) {
      const startedAt = performance.now();
      const session = needs.sessions.find(session_id);
      if (session === undefined) return failure(`write_stdin failed: Unknown process id ${session_id}`);
      const refusal = chars === "" ? null : await type(session, chars, call.signal);
      if (refusal !== null) return failure(`write_stdin failed: ${refusal}`);
      const waitMs = chars === "" ? clampedPoll(yieldMs, needs.maxPollMs) : clampedYield(yieldMs);
      await session.waitForEnd(waitMs, call.signal);
      return reportSession(needs, session, { startedAt, maxTokens });
    },
  });
}

/** Returns why the input was refused. Null also if the process has ended, which the report says. */
async function type(session: CommandSession, chars: string, signal?: AbortSignal): Promise<string | null> {
  if (session.acceptsInput) {
    const isTyped = session.exit !== null || (await session.write(chars));
    if (!isTyped && session.exit === null) return "failed to write to stdin";
  } else {
    if (chars !== CTRL_C)
      return "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open";
    // There is no terminal that turns the character into a signal.
    if (session.exit === null) await session.interrupt();
  }
  await pause(REACTION_MS, signal);
  return null;
}
