import type { OptionNames } from "../known-options.js";
import type { ConversationOptions, TurnInput } from "./conversation-options.js";

export const conversationOptionNames: OptionNames<ConversationOptions> = {
  model: true,
  sandbox: true,
  setup: true,
  setting: true,
  tools: true,
  truncation: true,
  toolOptions: true,
  mcpServers: true,
  approver: true,
  escalatedSandbox: true,
  agents: true,
  rememberHost: true,
  onClose: true,
  instructions: true,
  context: true,
  compaction: true,
  turnTimeoutMs: true,
  outputSchema: true,
  onEvent: true,
  capturesContent: true,
  session: true,
  threadId: true,
  initialItems: true,
  sentContext: true,
  workspaceLoss: true,
  earlierUse: true,
  branch: true,
  recordsTree: true,
  parent: true,
  now: true,
  random: true,
};

export const turnInputNames: OptionNames<TurnInput> = {
  prompt: true,
  images: true,
  signal: true,
  isLast: true,
};
