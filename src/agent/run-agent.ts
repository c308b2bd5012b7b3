import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import { openConversation } from "./conversation.js";
import { conversationOptionNames, turnInputNames } from "./conversation-option-names.js";
import type { ConversationOptions, TurnInput, TurnResult } from "./conversation-options.js";
import type { TokenUsage } from "./model/model-client.js";

/** The options of a conversation and its only turn. */
export type RunAgentOptions = ConversationOptions & Omit<TurnInput, "isLast">;

const { isLast: _, ...turnNames } = turnInputNames;
const runAgentOptionNames: OptionNames<RunAgentOptions> = { ...conversationOptionNames, ...turnNames };

/** The result of the turn, and where it was recorded. */
export interface AgentResult extends TurnResult {
  threadId: string;
  /** Time that the sandbox took to start; null if it did not. */
  sandboxStartMs: number | null;
  /** Tokens that the agents of the session have used, which are not part of `usage`. */
  agentUsage: TokenUsage;
  /** Null if the session was not recorded. */
  sessionFile: string | null;
}

/**
 * Runs a conversation of one turn: asks the model, runs its tool calls in the sandbox, and asks again with
 * their outputs until it calls no tool. A failure of the model, the sandbox or the engine is in the result;
 * only a fault in brig is thrown.
 */
export async function runAgent(options: RunAgentOptions): Promise<AgentResult> {
  refuseUnknownOptions(options, runAgentOptionNames, { of: "runAgent" });
  const { prompt, images, signal, ...others } = options;
  const conversation = openConversation(others);
  try {
    const turn = await conversation.runTurn({ prompt, images, signal, isLast: true });
    const { threadId, sandboxStartMs, sessionFile, agentUsage } = conversation;
    return { ...turn, threadId, sandboxStartMs, sessionFile, agentUsage };
  } finally {
    await conversation.close();
  }
}
