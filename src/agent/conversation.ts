import { refuseUnknownOptions } from "../known-options.js";
import { AgentConversation } from "./agent-conversation.js";
import { conversationOptionNames } from "./conversation-option-names.js";
import type { Conversation, ConversationOptions } from "./conversation-options.js";

/** Starts its sandbox at once. A session that may do more than its `parent` is `policy.invalid`, and nothing starts. Close it. */
export function openConversation(options: ConversationOptions): Conversation {
  refuseUnknownOptions(options, conversationOptionNames, { of: "openConversation" });
  const { sandbox } = options;
  if (options.parent === undefined || typeof sandbox !== "function") return new AgentConversation(options);
  // Nothing starts before it is known that it may.
  let allow: () => void = () => undefined;
  const allowed = new Promise<void>((resolve) => {
    allow = resolve;
  });
  const conversation = new AgentConversation({ ...options, sandbox: () => allowed.then(sandbox) });
  allow();
  return conversation;
}
