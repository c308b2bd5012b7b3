import type { SessionAuthority } from "../../../sandbox/index.js";
import type { McpServers } from "../../../tools/index.js";
import type { AgentSandbox, SandboxSource } from "../../agent-sandbox.js";
import type { ConversationOptions } from "../../conversation-options.js";
import type { SessionSetting } from "../../session/setting.js";
import type { AgentEvent } from "../../turn/events.js";
import type { AgentPlacement } from "../agent-label.js";
import type { AgentRole } from "../agents-options.js";
import { askingFor } from "../asking.js";
import { borrowedSandbox, borrowedServers } from "./borrowed-sandbox.js";

/** Parts that an agent takes over from the session that starts it. */
export interface Inheritance {
  options: ConversationOptions;
  setting: SessionSetting;
  authority: SessionAuthority;
  instructions: string;
  servers: McpServers | null;
  /**
   * Opens the session's second container, which has full access. Null if no command may run outside the
   * sandbox.
   */
  escalated: (() => Promise<AgentSandbox>) | null;
  emit(event: AgentEvent): void;
}

/** Parts that an agent has of its own, and does not take over from the session. */
interface OwnParts
  extends Pick<
    ConversationOptions,
    "model" | "session" | "initialItems" | "sentContext" | "earlierUse" | "truncation"
  > {
  sandbox: SandboxSource;
  setting: SessionSetting;
  placement: AgentPlacement;
  role: AgentRole | null;
}

/**
 * The options of an agent's conversation. An agent works under the session's setting and cannot loosen it. It
 * can ask a person for approval, but nothing else. On a fork it has no MCP servers and no second container,
 * since both would reach the session's own workspace.
 */
export function childOptions(own: OwnParts, inherited: Inheritance): ConversationOptions {
  const { options, authority, instructions, servers, escalated, emit } = inherited;
  const { placement, role, sandbox, model, session } = own;
  const { isForked } = placement;
  const { approver } = options;
  return {
    model,
    sandbox,
    setting: { ...own.setting, approvalPolicy: role?.approvalPolicy ?? own.setting.approvalPolicy },
    truncation: own.truncation,
    toolOptions: { ...options.toolOptions, user: undefined, elicit: undefined },
    mcpServers: servers === null || isForked ? undefined : () => borrowedServers(servers),
    approver: approver && askingFor(approver, placement),
    escalatedSandbox:
      escalated === null || isForked ? undefined : async () => borrowedSandbox(await escalated()),
    instructions,
    context: { ...options.context, developerInstructions: developerInstructions(options, role) },
    compaction: options.compaction,
    turnTimeoutMs: options.turnTimeoutMs,
    onEvent: (event) =>
      emit(isOfAgent(event) ? event : { kind: "agent-event", agentId: placement.id, event }),
    session,
    threadId: placement.id,
    initialItems: own.initialItems,
    sentContext: own.sentContext,
    earlierUse: own.earlierUse,
    parent: authority,
    agents: options.agents,
    now: options.now,
    random: options.random,
  };
}

function developerInstructions({ context }: ConversationOptions, role: AgentRole | null): string | undefined {
  const texts = [context?.developerInstructions, role?.instructions].filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join("\n\n");
}

/** Whether the event is about an agent that this agent has started. */
function isOfAgent({ kind }: AgentEvent): boolean {
  return kind === "agent-started" || kind === "agent-state" || kind === "agent-event";
}
