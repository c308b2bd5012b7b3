import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import { openConversation } from "./conversation.js";
import { conversationOptionNames, turnInputNames } from "./conversation-option-names.js";
import type { ConversationOptions, TurnInput, TurnResult } from "./conversation-options.js";

/** A conversation of one turn. */
export type RunAgentOptions = ConversationOptions & Omit<TurnInput, "isLast">;

const { isLast: _, ...turnNames } = turnInputNames;
const runAgentOptionNames: OptionNames<RunAgentOptions> = { ...conversationOptionNames, ...turnNames };

/** How the turn went, and where it is kept. */
export interface AgentResult extends TurnResult {
  threadId: string;
  /** How long the sandbox took to start; null when it never was ready. */
  sandboxStartMs: number | null;
  /** Null where nothing was kept. */
  sessionFile: string | null;
}

/**
 * Runs one turn in a conversation of its own: asks the model, runs its tool calls in the sandbox, and asks again with their outputs, until
 * it calls none. What goes wrong with the model, the sandbox or the engine is in the result; only a fault of brig's own is thrown.
 */
export async function runAgent(options: RunAgentOptions): Promise<AgentResult> {
  refuseUnknownOptions(options, runAgentOptionNames, { of: "runAgent" });
  const { prompt, images, signal, ...others } = options;
  const conversation = openConversation(others);
  try {
    const turn = await conversation.runTurn({ prompt, images, signal, isLast: true });
    const { threadId, sandboxStartMs, sessionFile } = conversation;
    return { ...turn, threadId, sandboxStartMs, sessionFile };
  } finally {
    await conversation.close();
  }
}
