import type { ApprovalPolicy } from "../../sandbox/index.js";
import type { SandboxSource } from "../agent-sandbox.js";
import type { ModelClient } from "../model/model-client.js";
import type { SessionSetting } from "../session/setting.js";

/** Agents that a session may start, and limits for them. */
export interface AgentsOptions {
  /** Depth to which agents may be nested: 0 for no agents, 1 for agents that start no further ones. Default: 1. */
  maxDepth?: number | undefined;
  /** Number of the session's agents that may be open at the same time. Default: 6. */
  maxThreads?: number | undefined;
  /** Number of tokens that all agents of the session together may use. Default: no limit. */
  maxTokens?: number | undefined;
  /** Time that the turns of all agents together may take. Default: no limit. */
  maxTimeMs?: number | undefined;
  /** Roles that an agent can be started in. Default: none. */
  roles?: Readonly<Record<string, AgentRole>> | undefined;
  /**
   * Further models that an agent can be started with, besides the session's own and those of roles. Default:
   * none.
   */
  models?: readonly string[] | undefined;
  /**
   * Opens the model of an agent. Default: every agent uses the session's own client, and no other model is
   * possible.
   */
  openModel?: ((choice: AgentModelChoice) => Promise<ModelClient>) | undefined;
  /**
   * `$BRIG_HOME`, where the sessions of agents are recorded. Default: they are not recorded, so a closed
   * agent cannot be resumed.
   */
  home?: string | undefined;
  /** Whether the session's sandbox can be forked. It can if its workspace is an overlay. Default: false. */
  canFork?: boolean | undefined;
  /** Opens a sandbox in another mode, for roles that have one. Default: such roles are refused. */
  inMode?: ((mode: string) => Promise<{ setting: SessionSetting; sandbox: SandboxSource }>) | undefined;
}

/** The ways in which an agent in a role differs from the session. */
export interface AgentRole {
  /** Tells the model when to choose the role. */
  description: string;
  /** Default: the session's model. */
  model?: string | undefined;
  /** Default: the session's. */
  reasoningEffort?: string | undefined;
  /** Instructions in addition to the session's. */
  instructions?: string | undefined;
  /**
   * A sandbox mode that allows no more than the session's. The agent then gets a container of its own.
   * Default: it works in the session's sandbox.
   */
  sandboxMode?: string | undefined;
  /** An approval policy that allows no more without asking than the session's. Default: the session's. */
  approvalPolicy?: ApprovalPolicy | undefined;
  /** The nicknames to choose from. Default: brig's own list. */
  nicknames?: readonly string[] | undefined;
}

/** The model chosen for an agent. */
export interface AgentModelChoice {
  /** The id of the agent, which is sent along with its requests. */
  threadId: string;
  /** The session or the agent that starts it. */
  parentId: string;
  model: string;
  /** Default: the session's. */
  reasoningEffort: string | undefined;
}

export const DEFAULT_MAX_DEPTH = 1;
export const DEFAULT_MAX_THREADS = 6;
