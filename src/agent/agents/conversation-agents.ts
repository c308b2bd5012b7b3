import type { BrigError } from "../../errors.js";
import type { ConversationOptions } from "../conversation-options.js";
import type { AgentPlacement } from "./agent-label.js";
import type { AgentTree } from "./agent-tree.js";
import { askingInTurn } from "./asking.js";
import type { AgentParent } from "./child/child-opener.js";
import { LazyAgents } from "./lazy-agents.js";

/** Place of an agent among the agents of its session. */
export interface AgentPlace {
  tree: AgentTree;
  placement: AgentPlacement;
}

/**
 * The agents of a conversation; null if it may start none. The code for agents is loaded when the first one
 * is started.
 */
export function conversationAgents(
  options: ConversationOptions,
  place: AgentPlace | null,
  parent: Omit<AgentParent, "options" | "depth" | "isForked" | "tree" | "now" | "notify"> & {
    /** Ends the turn of the conversation. */
    stop(error: BrigError): void;
  },
): LazyAgents | null {
  const { agents: limits, now = () => new Date() } = options;
  if (limits === undefined) return null;
  const depth = place?.placement.depth ?? 0;
  const agents: LazyAgents = new LazyAgents(limits, {
    depth,
    load: async () => {
      const [{ SessionAgents }, { AgentTree }] = await Promise.all([
        import("./session-agents.js"),
        import("./agent-tree.js"),
      ]);
      return new SessionAgents({
        ...parent,
        options,
        depth,
        isForked: place?.placement.isForked ?? false,
        tree: place?.tree ?? new AgentTree(limits, { now, abort: (error) => parent.stop(error) }),
        now,
        notify: (text) => agents.notify(text),
      });
    },
  });
  return agents;
}

/** If the session may start agents, makes sure that its approver is asked only one question at a time. */
export function withOneQuestionAtATime(options: ConversationOptions): ConversationOptions {
  const { agents, approver } = options;
  return agents === undefined || approver === undefined
    ? options
    : { ...options, approver: askingInTurn(approver) };
}
