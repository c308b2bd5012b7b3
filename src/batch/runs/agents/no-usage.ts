import type { AttemptUsage } from "../results/attempt-result.js";

/** Usage of an agent without a model. */
export const noUsage: Readonly<AttemptUsage> = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  turns: 0,
  toolCalls: 0,
};
