import type { Sandbox } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import type { AttemptUsage } from "../results/attempt-result.js";

/** An agent that works on tasks. */
export interface AttemptAgent {
  /** Recorded in the settings of a run: "model", "oracle", "nop", "scripted", "cheat:NAME", "command". */
  readonly name: string;
  /** Null for an agent without a model. */
  readonly model: string | null;
  /** Finds out whether it can work at all, before anything is started for it. Default: it can. Errors: `model.auth`, `config.invalid`. */
  prepare?(): Promise<void>;
  /** Works on one step of a task. What the agent does wrong is in the outcome; only what brig cannot do is thrown. */
  run(work: AgentWork): Promise<AgentOutcome>;
}

export interface AgentWork {
  task: Task;
  step: TaskStep;
  /** The agent's container, open until the agent has ended. */
  sandbox: Sandbox;
  /** Directory in which commands start. */
  cwd: string;
  /** Aborted when the time is over, with a `turn.timed-out`, or when the run is interrupted. */
  signal: AbortSignal;
  /** Time at which the agent is stopped; null for no limit. */
  deadline: Date | null;
  budget: { maxTurns: number | null; maxTokens: number | null; maxCostUsd: number | null };
  /** Folder for files of the agent: session, trajectory, output. */
  folder: string;
}

export interface AgentOutcome {
  ending: "completed" | "failed" | "timed-out" | "limit" | "not-run";
  /** Last words of the agent, or the reason for its failure; null for none. */
  message: string | null;
  usage: AttemptUsage;
  /** Files that it wrote, relative to the attempt's folder. */
  files: { trajectory?: string; session?: string; agentOutput?: string };
}

/** Usage of an agent without a model. */
export const noUsage: Readonly<AttemptUsage> = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  turns: 0,
  toolCalls: 0,
};

/** Adds up the usage of several agents. The cost is unknown if that of any is. */
export function usageTogether(one: AttemptUsage, other: AttemptUsage): AttemptUsage {
  const cost = one.costUsd === null || other.costUsd === null ? null : one.costUsd + other.costUsd;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    costUsd: cost,
    turns: one.turns + other.turns,
    toolCalls: one.toolCalls + other.toolCalls,
  };
}
