import { BrigError } from "../../../errors.js";
import type { TruncationPolicy } from "../../../sandbox/index.js";
import type { AgentCallOptions, SpawnAgentOptions } from "../../../tools/index.js";
import type { AgentSandbox, ForkedSandbox, SandboxSource } from "../../agent-sandbox.js";
import type { Conversation, ConversationOptions } from "../../conversation-options.js";
import type { ResponseItem } from "../../model/items.js";
import type { ModelClient } from "../../model/model-client.js";
import type { RecordedSession } from "../../session/read/session-reader.js";
import { sentContext } from "../../session/setting.js";
import { createThreadId } from "../../thread-id.js";
import type { AgentPlacement } from "../agent-label.js";
import type { AgentTree } from "../agent-tree.js";
import type { AgentRole } from "../agents-options.js";
import { forkOf } from "../forked-tree.js";
import { refused } from "../refused.js";
import { allRoles, roleOf } from "../roles.js";
import { ChildAgent } from "./child-agent.js";
import { childOptions, type Inheritance } from "./child-options.js";
import { freeNickname } from "./nicknames.js";

/** The session, or the agent, that starts agents. */
export interface AgentParent extends Omit<Inheritance, "options" | "setting" | "authority" | "servers"> {
  threadId: string;
  /** 0 for the session itself. */
  depth: number;
  isForked: boolean;
  tree: AgentTree;
  options: ConversationOptions;
  truncation: TruncationPolicy;
  /** Returns what agents inherit now. A person may change that between turns. */
  inheritance(): Pick<Inheritance, "setting" | "authority" | "servers">;
  sandbox(): Promise<AgentSandbox>;
  /** The conversation so far, without calls that have no output yet. */
  history(): readonly ResponseItem[];
  now(): Date;
  /** Adds a text to the model's next request. */
  notify(text: string): void;
  open(options: ConversationOptions, place: { tree: AgentTree; placement: AgentPlacement }): Conversation;
}

/** An agent, and its place among those that may be open at the same time. */
export interface OpenedChild {
  child: ChildAgent;
  place: Disposable;
}

interface Listeners {
  onState(child: ChildAgent): void;
  onFork(id: string, fork: { nickname: string; sandbox: ForkedSandbox }): void;
}

interface Chosen {
  role: { name: string; role: AgentRole } | null;
  model: string | undefined;
  reasoningEffort: string | undefined;
}

/** Opens the conversations of agents. */
export class ChildOpener {
  readonly #parent: AgentParent;
  readonly #listeners: Listeners;

  constructor(parent: AgentParent, listeners: Listeners) {
    this.#parent = parent;
    this.#listeners = listeners;
  }

  async spawn(options: SpawnAgentOptions): Promise<OpenedChild> {
    const parent = this.#parent;
    const { tree } = parent;
    const chosen = this.#choose(options);
    tree.budget.check();
    const place = tree.takePlace(parent.depth + 1);
    try {
      const placement = this.#placement(createThreadId(parent.now()), {
        role: chosen.role,
        isForked: options.isolation === "fork",
      });
      const isFull = options.forksContext;
      const { setting } = parent.inheritance();
      const history = isFull
        ? { initialItems: this.#historyFor(chosen), sentContext: sentContext(setting, parent.now()) }
        : {};
      const child = await this.#open(placement, chosen, { ...history, signal: options.signal });
      return { child, place };
    } catch (error) {
      place[Symbol.dispose]();
      throw error;
    }
  }

  /** Opens an agent again that was closed, also one from before this session was resumed. */
  async reopen(id: string, { signal }: AgentCallOptions): Promise<OpenedChild> {
    const parent = this.#parent;
    const { tree } = parent;
    const place = tree.takePlace(parent.depth + 1);
    try {
      const found = await tree.records.reopen(id, { parentId: parent.threadId, signal });
      if (found === null) throw refused(`agent with id ${id} not found`);
      const { recorded, log } = found;
      try {
        const { agent_nickname: nickname, isolation } = recorded.meta;
        if (isolation === "fork")
          throw refused(
            `agent with id ${id} cannot be resumed: it worked on a fork, which was closed with it`,
          );
        const chosen = this.#chosenBefore(recorded);
        const placement = this.#placement(id, {
          ...chosen,
          isForked: false,
          nickname: nickname ?? undefined,
        });
        const { sentContext: sent, usage, turns } = recorded;
        const child = await this.#open(placement, chosen, {
          initialItems: this.#itemsFor(chosen, recorded),
          sentContext: sent,
          earlierUse: { usage, turns },
          session: log,
          signal,
        });
        return { child, place };
      } catch (error) {
        log.close();
        throw error;
      }
    } catch (error) {
      place[Symbol.dispose]();
      throw error;
    }
  }

  #historyFor({ model }: Chosen): readonly ResponseItem[] {
    const { options, history } = this.#parent;
    const isSame = model === undefined || model === options.model.model;
    return isSame ? history() : withoutReasoning(history());
  }

  #itemsFor({ model }: Chosen, { items, meta, lastTurn }: RecordedSession): readonly ResponseItem[] {
    const own = this.#parent.options.model;
    const isSame = lastTurn?.model === (model ?? own.model) && meta.model_provider === own.provider;
    return isSame ? items : withoutReasoning(items);
  }

  /** Choices for continuing an agent: its role, and its last model if an agent can still be started with that. */
  #chosenBefore({ meta, lastTurn }: RecordedSession): Chosen {
    const { tree, options } = this.#parent;
    const role = roleOf(meta.agent_role ?? null, tree.options.roles);
    const model = lastTurn?.model ?? role?.role.model;
    const isOpenable =
      tree.options.openModel !== undefined &&
      meta.model_provider === options.model.provider &&
      model !== undefined &&
      this.#knownModels().includes(model);
    return { role, model: isOpenable ? model : undefined, reasoningEffort: role?.role.reasoningEffort };
  }

  #placement(
    id: string,
    { role, isForked, nickname }: { role: Chosen["role"]; isForked: boolean; nickname?: string | undefined },
  ): AgentPlacement {
    const { threadId, depth, tree } = this.#parent;
    const name = nickname ?? freeNickname(tree.nicknames, role?.role.nicknames);
    tree.nicknames.add(name);
    return {
      id,
      nickname: name,
      role: role?.name ?? null,
      parentId: threadId,
      depth: depth + 1,
      isForked,
    };
  }

  /** Error: `tool.failed` for a role or a model that does not exist. */
  #choose({ role: name, model, reasoningEffort, forksContext }: SpawnAgentOptions): Chosen {
    const { tree } = this.#parent;
    if (forksContext && name !== null)
      throw refused(
        "Full-history forked agents inherit the parent agent type; omit agent_type, or spawn without a full-history fork.",
      );
    const role = roleOf(name, tree.options.roles);
    const known = this.#knownModels();
    if (model !== null && !known.includes(model))
      throw refused(`Unknown model \`${model}\` for spawn_agent. Available models: ${known.join(", ")}`);
    return {
      role,
      model: model ?? role?.role.model,
      reasoningEffort: reasoningEffort ?? role?.role.reasoningEffort,
    };
  }

  /** The models that an agent can be started with. */
  #knownModels(): readonly string[] {
    const { tree, options } = this.#parent;
    const ofRoles = Object.values(allRoles(tree.options.roles)).flatMap(({ model }) => model ?? []);
    return [...new Set([options.model.model, ...(tree.options.models ?? []), ...ofRoles])];
  }

  async #open(
    placement: AgentPlacement,
    { role, ...choice }: Chosen,
    given: Pick<ConversationOptions, "initialItems" | "sentContext" | "earlierUse" | "session"> &
      AgentCallOptions,
  ): Promise<ChildAgent> {
    const parent = this.#parent;
    const { tree } = parent;
    const { signal, session, ...history } = given;
    const model = await this.#openModel(placement.id, choice);
    const { discard, fork, ...where } = await this.#whereFor(placement, role?.role ?? null, signal);
    try {
      const own = {
        ...history,
        ...where,
        model: tree.budget.metered(model),
        truncation: model.model === parent.options.model.model ? parent.options.truncation : undefined,
        session: session ?? (await tree.records.create(placement.id)),
        placement,
        role: role?.role ?? null,
      };
      const options = childOptions(own, { ...parent, ...parent.inheritance() });
      const conversation = parent.open(options, { tree, placement });
      const { id, nickname } = placement;
      if (fork !== null) this.#listeners.onFork(id, { nickname, sandbox: fork });
      return new ChildAgent(placement, {
        conversation,
        budget: tree.budget,
        truncation: parent.truncation,
        onState: this.#listeners.onState,
        onAbort: () => tree.abort(new BrigError("the user ended the turn", { code: "aborted" })),
      });
    } catch (error) {
      await discard();
      throw error;
    }
  }

  async #openModel(threadId: string, { model, reasoningEffort }: Omit<Chosen, "role">): Promise<ModelClient> {
    const { tree, options, threadId: parentId } = this.#parent;
    const name = model ?? options.model.model;
    if (tree.options.openModel !== undefined)
      return await tree.options.openModel({ threadId, parentId, model: name, reasoningEffort });
    if (name === options.model.model) return options.model;
    throw refused(`this session has no other model than ${options.model.model}`);
  }

  /**
   * Opens or borrows the sandbox of an agent, and returns it with the agent's setting. Call `discard` if the
   * agent cannot be started after all.
   */
  async #whereFor(
    placement: AgentPlacement,
    role: AgentRole | null,
    signal: AbortSignal | undefined,
  ): Promise<Where> {
    const parent = this.#parent;
    const { setting } = parent.inheritance();
    const mode = role?.sandboxMode;
    if (mode !== undefined && mode !== setting.sandboxMode) return await this.#inMode(mode, placement);
    const sandbox = await parent.sandbox();
    // A conversation closes only a sandbox that it got from a function. So the parent's own one stays open,
    // and a fork is closed with its agent.
    if (!placement.isForked) return { setting, sandbox, fork: null, discard: nothing };
    const fork = await forkOf(sandbox, { signal });
    return { setting, sandbox: () => Promise.resolve(fork), fork, discard: () => fork.close() };
  }

  /**
   * Opens a container in another mode. It mounts the host's workspace, so this is refused where agents work
   * on a fork.
   */
  async #inMode(mode: string, placement: AgentPlacement): Promise<Where> {
    const { tree, isForked } = this.#parent;
    const { inMode } = tree.options;
    if (inMode === undefined || isForked || placement.isForked)
      throw refused(
        `a role with the sandbox mode ${mode} cannot be used here: its container would not see the files of this session`,
      );
    return { ...(await inMode(mode)), fork: null, discard: nothing };
  }
}

interface Where {
  setting: Inheritance["setting"];
  sandbox: SandboxSource;
  fork: ForkedSandbox | null;
  discard(): Promise<unknown>;
}

/** Reasoning is encrypted for one model, and another one may refuse it. */
function withoutReasoning(items: readonly ResponseItem[]): readonly ResponseItem[] {
  return items.filter(({ type }) => type !== "reasoning");
}

const nothing = () => Promise.resolve(undefined);
