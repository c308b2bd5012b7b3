import { isBrigError } from "../../../errors.js";
import type { TruncationPolicy } from "../../../sandbox/index.js";
import { truncateText } from "../../../sandbox/index.js";
import type { AgentMessage, AgentState } from "../../../tools/index.js";
import type { Conversation, TurnResult } from "../../conversation-options.js";
import type { AgentPlacement } from "../agent-label.js";
import type { AgentBudget } from "../budget.js";

interface ChildParts {
  conversation: Conversation;
  budget: AgentBudget;
  /** The length to which the agent's final message is cut for its parent. */
  truncation: TruncationPolicy;
  onState(agent: ChildAgent): void;
  /** Called when a person has answered a question of the agent by ending the session's turn. */
  onAbort(): void;
}

/** An agent that a session has started. It takes its messages one after the other, each as a turn. */
export class ChildAgent {
  readonly placement: AgentPlacement;
  readonly #parts: ChildParts;
  readonly #queue: AgentMessage[] = [];
  #state: AgentState = { kind: "starting" };
  /** Aborts the current turn; null if there is none. */
  #stop: AbortController | null = null;
  #work: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(placement: AgentPlacement, parts: ChildParts) {
    this.placement = placement;
    this.#parts = parts;
  }

  get state(): AgentState {
    return this.#state;
  }

  send(message: AgentMessage, { interrupts }: { interrupts: boolean }): void {
    if (interrupts) this.#queue.length = 0;
    this.#queue.push(message);
    if (this.#stop === null) this.#work = this.#run();
    else if (interrupts) this.#stop.abort(new Error("interrupted by a message"));
  }

  /** Stops its turn and forgets the messages that wait. It can be sent others. */
  async interrupt(): Promise<void> {
    this.#queue.length = 0;
    this.#stop?.abort(new Error("interrupted"));
    await this.#work;
  }

  /** May be called twice. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.interrupt();
    try {
      await this.#parts.conversation.close();
    } finally {
      this.#change({ kind: "closed" });
    }
  }

  async #run(): Promise<void> {
    for (let message = this.#queue.shift(); message !== undefined; message = this.#queue.shift()) {
      const stop = new AbortController();
      this.#stop = stop;
      this.#change({ kind: "running" });
      const state = await this.#takeTurn(message, stop);
      // Set before the change is reported, because the listener may send the next message at once.
      this.#stop = null;
      this.#change(state);
      if (this.#stop !== null) return;
    }
  }

  async #takeTurn({ text, images }: AgentMessage, stop: AbortController): Promise<AgentState> {
    const { conversation, budget } = this.#parts;
    try {
      budget.check();
      using _ = budget.work((error) => stop.abort(error));
      const result = await conversation.runTurn({ prompt: text, images, signal: stop.signal });
      return this.#stateAfter(result, stop.signal);
    } catch (error) {
      return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
    }
  }

  #stateAfter({ status, lastMessage, error }: TurnResult, { aborted, reason }: AbortSignal): AgentState {
    switch (status) {
      case "completed": {
        const { truncation } = this.#parts;
        return {
          kind: "completed",
          message: lastMessage === null ? null : truncateText(lastMessage, truncation),
        };
      }
      case "failed":
        return { kind: "failed", message: error?.message ?? "the turn failed" };
      case "interrupted":
        if (isBrigError(reason)) return { kind: "failed", message: reason.message };
        if (!aborted) this.#parts.onAbort();
        return { kind: "interrupted" };
      default:
        return status satisfies never;
    }
  }

  #change(state: AgentState): void {
    this.#state = state;
    this.#parts.onState(this);
  }
}
