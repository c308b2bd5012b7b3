import { createWriteStream } from "node:fs";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AgentResult, ModelClient, TokenUsage } from "../../../agent/index.js";
import {
  atifDocument,
  createThreadId,
  noUsage,
  openSessionFile,
  runAgent,
  usageTogether,
} from "../../../agent/index.js";
import { BrigError } from "../../../errors.js";
import { networkScope } from "../place/task-sandbox.js";
import type { AgentOutcome, AgentWork, AttemptAgent } from "./attempt-agent.js";

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

/**
 * The cost of one request in US dollars, by what it used. Null if that is unknown: there is no price, or the endpoint
 * does not count tokens, and `usage` is null.
 */
export type CostOf = (usage: TokenUsage | null) => number | null;

/** A model that answers until the budget of an attempt is used up. */
export class BudgetedModel {
  readonly client: ModelClient;
  turns = 0;
  usage: TokenUsage = noUsage;
  /** Why no further request is made; null while there may be more. */
  exhausted: string | null = null;
  /** Cost in US dollars; null once the cost of any request is unknown. */
  costUsd: number | null = 0;
  readonly #budget: AgentWork["budget"];

  constructor(model: ModelClient, { budget, costOf }: { budget: AgentWork["budget"]; costOf: CostOf }) {
    this.#budget = budget;
    const { provider, model: name, maxStreamRetries, takesOnlyFunctions } = model;
    const begin = () => this.#begin();
    const used = (usage: TokenUsage | null) => {
      if (usage !== null) this.usage = usageTogether(this.usage, usage);
      const cost = costOf(usage);
      this.costUsd = this.costUsd === null || cost === null ? null : this.costUsd + cost;
    };
    this.client = {
      ...{ provider, model: name, maxStreamRetries, takesOnlyFunctions },
      async *stream(request, signal) {
        begin();
        for await (const event of model.stream(request, signal)) {
          if (event.kind === "completed") used(event.usage);
          yield event;
        }
      },
    };
  }

  #begin(): void {
    this.exhausted = this.#whyExhausted();
    if (this.exhausted === null) this.turns++;
    else throw new BrigError(this.exhausted, { code: "agents.budget", hint: "raise the limit of the run" });
  }

  #whyExhausted(): string | null {
    const { maxTurns, maxTokens, maxCostUsd } = this.#budget;
    const tokens = this.usage.inputTokens + this.usage.outputTokens;
    if (maxTurns !== null && this.turns >= maxTurns) return `the limit of ${maxTurns} turns is reached`;
    if (maxTokens !== null && tokens >= maxTokens) return `the limit of ${maxTokens} tokens is reached`;
    if (maxCostUsd === null) return null;
    if (this.costUsd === null)
      return `the endpoint does not say how many tokens it used, so nobody knows whether the limit of ${maxCostUsd} US dollars is reached`;
    return this.costUsd >= maxCostUsd ? `the limit of ${maxCostUsd} US dollars is reached` : null;
  }
}
