import { passKindOf } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { shownLine } from "./shown-text.js";
import type { AttemptRow } from "./view-model.js";

const FULL_REWARD = 1;

export function attemptRow(result: AttemptResult): AttemptRow {
  const { usage, durations, agent } = result;
  const findings = result.steps.map(({ verification }) => verification?.findings.length ?? 0);
  return {
    task: shownLine(result.task),
    attempt: result.attempt,
    agent: shownLine(agent.name),
    model: agent.model === null ? null : shownLine(agent.model),
    status: result.status,
    reward: result.reward,
    cause: causeOf(result),
    passKind: passKindOf(result),
    startedAt: result.startedAt,
    wallMs: Math.max(0, Date.parse(result.endedAt) - Date.parse(result.startedAt)),
    agentMs: durations.agentMs,
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    costUsd: usage.costUsd,
    turns: usage.turns,
    toolCalls: usage.toolCalls,
    earlierTries: result.tries.length,
    findings: findings.reduce((sum, count) => sum + count, 0),
  };
}

/** The first thing that kept an attempt from its full reward. */
function causeOf({ status, reward, failure, steps }: AttemptResult): string | null {
  if (status === "cancelled") return "cancelled";
  if (failure !== null) return failure.class;
  if (status === "scored" && reward !== null && reward >= FULL_REWARD) return null;
  const verifiers = steps.flatMap(({ verification }) =>
    verification === null || verification.verifier === "scored" ? [] : [verification.verifier],
  );
  if (verifiers.includes("tampered")) return "tampered";
  const ending = steps
    .map(({ agent }) => agent)
    .find((agent) => agent !== "completed" && agent !== "not-run");
  if (ending !== undefined) return ending === "failed" ? "agent-failed" : ending;
  const [verifier] = verifiers;
  if (verifier !== undefined) return verifier === "timed-out" ? "verifier-timed-out" : verifier;
  return status === "scored" ? "wrong" : "unscored";
}
