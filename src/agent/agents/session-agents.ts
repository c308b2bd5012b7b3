import { isBrigError } from "../../errors.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type {
  AgentCallOptions,
  AgentChanges,
  AgentMessage,
  AgentPathOptions,
  AgentState,
  AgentsWait,
  AppliedChanges,
  SendOptions,
  SpawnAgentOptions,
  SpawnedAgent,
  WaitOptions,
} from "../../tools/index.js";
import { isDone, wireStatus } from "../../tools/index.js";
import type { TokenUsage } from "../model/model-client.js";
import { createThreadId } from "../thread-id.js";
import { type AgentParent, ChildOpener, type OpenedChild } from "./child/child-opener.js";
import { ForkedTrees } from "./forked-tree.js";
import { refused } from "./refused.js";

/** The agents that one session, or one agent, has started. */
export class SessionAgents {
  readonly #parent: AgentParent;
  readonly #opener: ChildOpener;
  readonly #forks = new ForkedTrees();
  readonly #open = new Map<string, OpenedChild>();
  readonly #closed = new Set<string>();
  /** Agents that are being started. */
  readonly #opening = new Set<Promise<unknown>>();
  readonly #waiting = new Set<() => void>();
  #isClosed = false;

  constructor(parent: AgentParent) {
    this.#parent = parent;
    this.#opener = new ChildOpener(parent, {
      onState: (child) => this.#noteState(child),
      onFork: (id, fork) => this.#forks.add(id, fork),
    });
  }

  /** Tokens used by all agents of the session. */
  get usage(): TokenUsage {
    return this.#parent.tree.budget.usage;
  }

  async spawn(task: AgentMessage, options: SpawnAgentOptions): Promise<SpawnedAgent> {
    const opened = await this.#add(this.#opener.spawn(options), options);
    const { id, nickname } = opened.child.placement;
    this.#parent.emit({ kind: "agent-started", agent: opened.child.placement, task: task.text });
    opened.child.send(task, { interrupts: false });
    return { id, nickname };
  }

  async resume(id: string, options: AgentCallOptions): Promise<AgentState> {
    const open = this.#open.get(id);
    if (open !== undefined) return open.child.state;
    const { child } = await this.#add(this.#opener.reopen(id, options), options);
    this.#closed.delete(id);
    this.#parent.emit({ kind: "agent-started", agent: child.placement, task: null });
    return child.state;
  }

  send(id: string, message: AgentMessage, { interrupts }: SendOptions): string {
    this.#find(id).child.send(message, { interrupts });
    return createThreadId(this.#parent.now());
  }

  stateOf(id: string): AgentState {
    const state = this.#open.get(id)?.child.state;
    return state ?? { kind: this.#closed.has(id) ? "closed" : "unknown" };
  }

  async wait(ids: readonly string[], { timeoutMs, signal }: WaitOptions): Promise<AgentsWait> {
    using limit = new TimeLimit(timeoutMs, signal);
    for (;;) {
      const done = ids
        .map((id): [string, AgentState] => [id, this.stateOf(id)])
        .filter(([, state]) => isDone(state));
      if (done.length > 0) return { states: new Map(done), timedOut: false };
      await this.#changeOrAbort(limit.signal);
      signal?.throwIfAborted();
      if (limit.isOver) return { states: new Map(), timedOut: true };
    }
  }

  async close(id: string): Promise<AgentState> {
    const opened = this.#find(id);
    const { state } = opened.child;
    await this.#remove(id, opened);
    return state;
  }

  async changes(id: string, options: AgentPathOptions): Promise<AgentChanges> {
    this.#find(id);
    return await withAnswer(this.#forks.changes(id, options));
  }

  async applyChanges(id: string, options: AgentPathOptions): Promise<AppliedChanges> {
    this.#find(id);
    const parent = await this.#parent.sandbox();
    return await withAnswer(this.#forks.apply(id, { ...options, parent }));
  }

  /** Stops the turns of all agents. They stay open. */
  async interrupt(): Promise<void> {
    await Promise.allSettled(this.#opening);
    await Promise.all([...this.#open.values()].map(({ child }) => child.interrupt()));
  }

  /** Closes all agents. After a call with `isFinal`, no more can be started. */
  async closeAll({ isFinal }: { isFinal: boolean }): Promise<void> {
    this.#isClosed ||= isFinal;
    await Promise.allSettled(this.#opening);
    const closings = await Promise.allSettled(
      [...this.#open].map(([id, opened]) => this.#remove(id, opened)),
    );
    // A warning instead of an error, because the session must go on to close its own sandbox.
    for (const closing of closings)
      if (closing.status === "rejected")
        this.#parent.emit({
          kind: "warning",
          message: `an agent was not closed properly: ${String(closing.reason)}`,
        });
  }

  /** Waits until an agent is opened. If its parent has stopped meanwhile, the agent is closed at once. */
  async #add(opening: Promise<OpenedChild>, { signal }: AgentCallOptions): Promise<OpenedChild> {
    const adding = opening.then(async (opened) => {
      const { id } = opened.child.placement;
      this.#open.set(id, opened);
      if (!this.#isClosed && signal?.aborted !== true) return opened;
      await this.#remove(id, opened);
      signal?.throwIfAborted();
      throw refused("the session ends");
    });
    this.#opening.add(adding);
    try {
      return await adding;
    } catch (error) {
      throw asAnswer(error);
    } finally {
      this.#opening.delete(adding);
    }
  }

  async #remove(id: string, { child, place }: OpenedChild): Promise<void> {
    this.#open.delete(id);
    this.#closed.add(id);
    this.#forks.remove(id);
    try {
      await child.close();
    } finally {
      place[Symbol.dispose]();
    }
  }

  #find(id: string): OpenedChild {
    const opened = this.#open.get(id);
    if (opened !== undefined) return opened;
    throw refused(`agent with id ${id} ${this.#closed.has(id) ? "is closed" : "not found"}`);
  }

  #noteState({ placement: { id }, state }: OpenedChild["child"]): void {
    this.#parent.emit({ kind: "agent-state", agentId: id, state });
    if (state.kind === "completed" || state.kind === "failed") this.#parent.notify(notification(id, state));
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when the state of an agent has changed, or at the abort. */
  #changeOrAbort(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(end);
        signal.removeEventListener("abort", end);
        resolve();
      };
      if (signal.aborted) return resolve();
      this.#waiting.add(end);
      signal.addEventListener("abort", end, { once: true });
    });
  }
}

/** Message for the model when an agent is done, in Codex's format. */
function notification(id: string, state: AgentState): string {
  const json = JSON.stringify({ agent_path: id, status: wireStatus(state) });
  // Escaping the slash keeps the JSON the same, and keeps the agent's words from closing the XML element.
  const content = json.replaceAll("</", "<\\/");
  return `<subagent_notification>\n${content}\n</subagent_notification>`;
}

/**
 * Turns errors of a fork into answers for the model. Even a fork that is gone must not end the session's
 * turn.
 */
async function withAnswer<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isBrigError(error) || error.code === "aborted" || error.code.startsWith("tool.")) throw error;
    throw refused(error.hint === undefined ? error.message : `${error.message} (${error.hint})`);
  }
}

/**
 * Turns an error of a start into an answer for the model, which can go on without the agent. Examples: a role
 * that would loosen the setting, or a model that cannot be opened.
 */
function asAnswer(error: unknown): unknown {
  if (!isBrigError(error) || error.code === "aborted" || error.code === "sandbox.gone") return error;
  return error.code.startsWith("tool.") ? error : refused(`the agent could not be started: ${error.message}`);
}
