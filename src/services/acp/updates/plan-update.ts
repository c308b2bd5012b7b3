import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { PlanStep } from "../../../tools/index.js";
import { titleText } from "./shown-text.js";

const MAX_PLAN_STEPS = 200;

export function planUpdate(steps: readonly PlanStep[]): SessionUpdate {
  const entries = steps
    .slice(0, MAX_PLAN_STEPS)
    .map(({ step, status }) => ({ content: titleText(step), priority: "medium" as const, status }));
  return { sessionUpdate: "plan", entries };
}
