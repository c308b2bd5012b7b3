import type { ToolGates } from "../tools/index.js";
import { borrowedSandbox } from "./agents/child/borrowed-sandbox.js";
import { openConversation } from "./conversation.js";
import type { Conversation, ConversationOptions } from "./conversation-options.js";

/** What a conversation beside another one has of its own. */
interface AsideOptions extends Pick<ConversationOptions, "outputSchema" | "onEvent"> {
  /** They take precedence over those of the other one. */
  gates: ToolGates;
}

/**
 * Opens an empty conversation in the sandbox of another one and with its model, such as for a review. It asks nobody, starts no
 * agents and MCP servers, and is not recorded. Closing it leaves the sandbox open.
 */
export function openAside(
  beside: Conversation,
  { toolOptions, context, compaction, turnTimeoutMs }: ConversationOptions,
  { gates, outputSchema, onEvent }: AsideOptions,
): Conversation {
  return openConversation({
    model: beside.model,
    sandbox: beside.sandbox.then(borrowedSandbox),
    setting: { ...beside.setting, approvalPolicy: "never" },
    toolOptions: {
      ...toolOptions,
      gates: { ...toolOptions?.gates, ...gates },
      user: undefined,
      elicit: undefined,
    },
    ...{ context, compaction, turnTimeoutMs, outputSchema, onEvent },
  });
}
