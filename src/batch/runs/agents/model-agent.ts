import { createWriteStream } from "node:fs";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AgentResult, ModelClient } from "../../../agent/index.js";
import { atifDocument, createThreadId, openSessionFile, runAgent } from "../../../agent/index.js";
import { networkScope } from "../place/network-scope.js";
import type { AgentOutcome, AgentWork, AttemptAgent } from "./attempt-agent.js";
import { BudgetedModel, type CostOf } from "./budgeted-model.js";

const TRAJECTORY = "trajectory.json";

export interface ModelAgentOptions {
  /** "model", or "scripted" for a model that follows a script. */
  name: "model" | "scripted";
  model: string;
  /** A new client for each conversation. */
  openModel(threadId: string): Promise<ModelClient>;
  /** Default: no cost is known. */
  costOf?: CostOf | undefined;
}

/** Brig's own loop: a model that works with brig's tools in the task's container. */
export function modelAgent({ name, model, openModel, costOf = () => null }: ModelAgentOptions): AttemptAgent {
  return {
    name,
    model,
    async prepare() {
      await openModel(createThreadId(new Date()));
    },
    async run(work) {
      const threadId = createThreadId(new Date());
      const budgeted = new BudgetedModel(await openModel(threadId), { budget: work.budget, costOf });
      const now = () => new Date();
      const result = await runAgent({
        model: budgeted.client,
        sandbox: work.sandbox,
        setting: settingOf(work),
        prompt: work.step.instruction,
        signal: work.signal,
        session: await openSessionFile({ home: work.folder, threadId, now }),
        threadId,
        context: { developerInstructions: limitsInWords(work) },
        turnTimeoutMs: LONGEST_TURN_MS,
      });
      const { sessionFile } = result;
      if (sessionFile !== null) await writeTrajectory(sessionFile, join(work.folder, TRAJECTORY));
      return outcomeOf(result, { budgeted, folder: work.folder });
    },
  };
}

/** The attempt has its own clock. */
const LONGEST_TURN_MS = 7 * 24 * 3600 * 1000;

function settingOf({ task, step, cwd }: AgentWork) {
  return {
    cwd,
    sandboxMode: "danger-full-access",
    network: networkScope(step.agent.network ?? task.environment.network),
    approvalPolicy: "never" as const,
    writableRoots: [],
    shell: "bash",
    timezone: "UTC",
  };
}

/** An agent that knows its limits can finish before they end its work. */
function limitsInWords({ deadline, budget }: AgentWork): string | undefined {
  const { maxTurns, maxTokens, maxCostUsd } = budget;
  const limits = [
    deadline === null
      ? null
      : `Your time for this task ends at ${deadline.toISOString()}. Then your work is graded as it is.`,
    maxTurns === null ? null : `You have at most ${maxTurns} turns: each of your responses is one.`,
    maxTokens === null ? null : `You have at most ${maxTokens} tokens, input and output together.`,
    maxCostUsd === null ? null : `Your requests may cost at most ${maxCostUsd} US dollars.`,
  ].filter((line) => line !== null);
  return limits.length === 0 ? undefined : limits.join("\n");
}

async function writeTrajectory(session: string, file: string): Promise<void> {
  await pipeline(Readable.from(atifDocument(session)), createWriteStream(file, { mode: 0o600 }));
}

function outcomeOf(
  result: AgentResult,
  { budgeted, folder }: { budgeted: BudgetedModel; folder: string },
): AgentOutcome {
  const { status, error, lastMessage, toolCalls, sessionFile } = result;
  const isExhausted = budgeted.exhausted !== null;
  if (error !== undefined && !isExhausted && !isOwnFault(error.code)) throw error;
  const { inputTokens, cachedInputTokens, outputTokens } = budgeted.usage;
  const costUsd = budgeted.costUsd;
  return {
    ending: isExhausted ? "limit" : status === "completed" ? "completed" : "failed",
    message: budgeted.exhausted ?? error?.message ?? lastMessage,
    usage: { inputTokens, cachedInputTokens, outputTokens, costUsd, turns: budgeted.turns, toolCalls },
    files: sessionFile === null ? {} : { session: relative(folder, sessionFile), trajectory: TRAJECTORY },
  };
}

/** A conversation that fails so fails because of what the model said. */
function isOwnFault(code: string): boolean {
  return ["model.context-window", "model.script", "turn.timed-out", "agents.budget"].includes(code);
}
