import type {
  AgentCallOptions,
  AgentChanges,
  AgentMessage,
  AgentPathOptions,
  AgentRoleName,
  AgentState,
  Agents,
  AgentsWait,
  AppliedChanges,
  SendOptions,
  SpawnAgentOptions,
  SpawnedAgent,
  WaitOptions,
} from "../../tools/index.js";
import { noUsage, type TokenUsage } from "../model/model-client.js";
import { type AgentsOptions, DEFAULT_MAX_DEPTH } from "./agents-options.js";
import { agentRoles } from "./roles.js";
import type { SessionAgents } from "./session-agents.js";

/**
 * The agents of a session. The code that starts them is loaded at the first call, since most sessions start
 * none.
 */
export class LazyAgents implements Agents {
  readonly roles: readonly AgentRoleName[];
  readonly canFork: boolean;
  readonly isDeepest: boolean;
  readonly #load: () => Promise<SessionAgents>;
  #loading: Promise<SessionAgents> | null = null;
  #loaded: SessionAgents | null = null;
  #notices: string[] = [];

  /** `depth` is 0 for the agents of the session itself. */
  constructor(
    options: AgentsOptions,
    { depth, load }: { depth: number; load: () => Promise<SessionAgents> },
  ) {
    this.roles = agentRoles(options.roles);
    this.canFork = options.canFork === true;
    this.isDeepest = depth >= (options.maxDepth ?? DEFAULT_MAX_DEPTH);
    this.#load = load;
  }

  /** Tokens used by all agents of the session. */
  get usage(): TokenUsage {
    return this.#loaded?.usage ?? noUsage;
  }

  /** Keeps a text for the model's next request. */
  notify(text: string): void {
    this.#notices.push(text);
  }

  takeNotices(): readonly string[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  /** Stops what the agents are doing. */
  async interrupt(): Promise<void> {
    if (this.#loading !== null) await (await this.#loading).interrupt();
  }

  /** Closes all agents. After a call with `isFinal`, no more can be started. */
  async closeAll(options: { isFinal: boolean }): Promise<void> {
    if (this.#loading !== null) await (await this.#loading).closeAll(options);
  }

  async spawn(task: AgentMessage, options: SpawnAgentOptions): Promise<SpawnedAgent> {
    return await (await this.#get()).spawn(task, options);
  }

  async send(id: string, message: AgentMessage, options: SendOptions): Promise<string> {
    return (await this.#get()).send(id, message, options);
  }

  async resume(id: string, options: AgentCallOptions): Promise<AgentState> {
    return await (await this.#get()).resume(id, options);
  }

  async wait(ids: readonly string[], options: WaitOptions): Promise<AgentsWait> {
    return await (await this.#get()).wait(ids, options);
  }

  async close(id: string): Promise<AgentState> {
    return await (await this.#get()).close(id);
  }

  stateOf(id: string): AgentState {
    return this.#loaded?.stateOf(id) ?? { kind: "unknown" };
  }

  async changes(id: string, options: AgentPathOptions): Promise<AgentChanges> {
    return await (await this.#get()).changes(id, options);
  }

  async applyChanges(id: string, options: AgentPathOptions): Promise<AppliedChanges> {
    return await (await this.#get()).applyChanges(id, options);
  }

  async #get(): Promise<SessionAgents> {
    this.#loading ??= this.#load();
    this.#loaded = await this.#loading;
    return this.#loaded;
  }
}
