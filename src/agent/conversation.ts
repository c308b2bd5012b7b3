import { refuseUnknownOptions } from "../known-options.js";
import { AgentConversation } from "./agent-conversation.js";
import { conversationOptionNames } from "./conversation-option-names.js";
import type { Conversation, ConversationOptions } from "./conversation-options.js";

/**
 * Opens a conversation, whose sandbox starts at once; the caller closes it. Error: `policy.invalid` for a
 * session that may do more than its `parent`; its sandbox does not start.
 */
export function openConversation(options: ConversationOptions): Conversation {
  refuseUnknownOptions(options, conversationOptionNames, { of: "openConversation" });
  const { sandbox } = options;
  if (typeof sandbox !== "function") return new AgentConversation(options);
  let isAllowed = false;
  const never = new Promise<never>(() => undefined);
  // Called once the constructor has returned, or has thrown.
  const start = () => (isAllowed ? sandbox() : never);
  const conversation = new AgentConversation({ ...options, sandbox: start });
  isAllowed = true;
  return conversation;
}
