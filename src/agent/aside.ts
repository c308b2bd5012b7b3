import type { ToolGates } from "../tools/index.js";
import type { AgentSandbox } from "./agent-sandbox.js";
import { borrowedSandbox } from "./agents/child/borrowed-sandbox.js";
import { openConversation } from "./conversation.js";
import type { Conversation, ConversationOptions } from "./conversation-options.js";
import type { SessionSetting } from "./session/setting.js";

/** What a conversation beside another one has of its own. */
interface AsideOptions extends Pick<ConversationOptions, "outputSchema" | "onEvent"> {
  /** They take precedence over those of the other one. */
  gates: ToolGates;
  /** Where it works, in a sandbox that is opened for it. Default: in the sandbox of the other one, which stays open. */
  place?: Place | undefined;
}

interface Place {
  setting: SessionSetting;
  open(): Promise<AgentSandbox>;
}

/**
 * Opens an empty conversation beside another one and with its model, such as for a review. It asks nobody, starts no agents and
 * MCP servers, and is not recorded.
 */
export function openAside(
  beside: Conversation,
  { toolOptions, context, compaction, turnTimeoutMs }: ConversationOptions,
  { gates, outputSchema, onEvent, place }: AsideOptions,
): Conversation {
  return openConversation({
    model: beside.model,
    sandbox: place === undefined ? beside.sandbox.then(borrowedSandbox) : () => ownSandbox(place),
    setting: { ...(place?.setting ?? beside.setting), approvalPolicy: "never" },
    toolOptions: {
      ...toolOptions,
      gates: { ...toolOptions?.gates, ...gates },
      user: undefined,
      elicit: undefined,
    },
    ...{ context, compaction, turnTimeoutMs, outputSchema, onEvent },
  });
}

/** It takes no part in the restore points of the other conversation. */
async function ownSandbox({ open }: Place): Promise<AgentSandbox> {
  const sandbox = await open();
  return { ...borrowedSandbox(sandbox), close: () => sandbox.close() };
}
