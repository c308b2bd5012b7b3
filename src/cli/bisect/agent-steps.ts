import type { ChangingStep } from "../../agent/index.js";
import { agentsOf, changingSteps, readSessionLines } from "../../agent/index.js";

/** A change that an agent of a session has made in the session's workspace. */
export interface StepOfAgent {
  change: ChangingStep;
  agent: { id: string; nickname: string | null };
}

/** The changes that all agents below a session have recorded, by snapshot and point. */
export async function agentSteps(
  sessionId: string,
  { brigHome, signal }: { brigHome: string; signal: AbortSignal },
): Promise<Map<string, StepOfAgent>> {
  const steps = new Map<string, StepOfAgent>();
  for (const { id, nickname, path } of await agentsOf(sessionId, brigHome))
    for await (const change of changingSteps(readSessionLines(path, { signal })))
      steps.set(stateKey(change.point.snapshot, change.point.number), { change, agent: { id, nickname } });
  return steps;
}

export function stateKey(snapshot: string, point: number): string {
  return `${snapshot}:${point}`;
}
