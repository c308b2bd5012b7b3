import type { TokenUsage } from "../../agent/index.js";

/** How many tokens the session and its agents have used; empty for each of the two that has used none. */
export function usageText({ usage, agentUsage }: { usage: TokenUsage; agentUsage: TokenUsage }): string[] {
  return [...tokens(usage, ""), ...tokens(agentUsage, "agents ")];
}

function tokens({ inputTokens, outputTokens }: TokenUsage, whose: string): string[] {
  return inputTokens === 0 ? [] : [`${whose}${inputTokens} tokens in, ${outputTokens} out`];
}
