import type { AgentEvent, Conversation, TurnResult } from "../../../agent/index.js";
import { observedModel, openConversation } from "../../../agent/index.js";
import { BrigError, invalidUsage } from "../../../errors.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { Gate } from "../../../lib/time/gate.js";
import { pause } from "../../../lib/time/pause.js";
import type { CodexEvent } from "./events/codex-event.js";
import { CodexEvents } from "./events/codex-events.js";
import type { PreparedThread } from "./prepare-thread.js";
import type { Caller, CurrentCaller } from "./questions/current-caller.js";
import type { CallSettings } from "./tool-arguments.js";

/** Calls of one session at the same time: one runs, the others wait. */
const MAX_CALLS = 16;
/** How long an interrupted turn may take to end before its sandbox is closed. */
const SETTLE_MS = 5000;

interface ThreadOptions {
  people: CurrentCaller;
  /** What the session began with in this process; null if it began in another one. */
  settings: CallSettings | null;
  /** After this long without a turn, the session closes its sandbox. The next turn opens another one. */
  idleMs: number;
}

/** A session that is open in this process. It takes one turn after the other. */
export class Thread {
  readonly id: string;
  readonly settings: CallSettings | null;
  /** The client whose call was the last. The session is closed when this client has gone. */
  owner: object | null = null;
  lastUsedAt = performance.now();
  readonly #conversation: Conversation;
  readonly #events: CodexEvents;
  readonly #people: CurrentCaller;
  readonly #idleMs: number;
  readonly #turns = new Gate();
  readonly #stop = new AbortController();
  #idle: NodeJS.Timeout | undefined;
  #calls = 0;
  #isConfigured = false;

  constructor(prepared: PreparedThread, { people, settings, idleMs }: ThreadOptions) {
    const { model } = prepared;
    this.id = prepared.threadId;
    this.settings = settings;
    this.#people = people;
    this.#idleMs = idleMs;
    this.#events = new CodexEvents(
      {
        threadId: prepared.threadId,
        model: model.model,
        provider: model.provider,
        sessionFile: prepared.session?.path ?? null,
        windowTokens: () => this.#conversation.room.windowTokens,
        setting: () => this.#conversation.setting,
        now: () => new Date(),
      },
      prepared.earlierUse?.usage,
    );
    this.#conversation = openConversation({
      ...prepared,
      model: observedModel(model, {
        onRequest: () => this.#tell(this.#events.beginResponse()),
        onUsage: (usage) => this.#events.count(usage),
      }),
      onEvent: (event) => this.#follow(event),
    });
  }

  get isIdle(): boolean {
    return this.#calls === 0;
  }

  /** Keeps the session open for one call of `takeTurn`. Error: `usage.invalid` if too many calls wait. */
  reserve(): void {
    if (this.#calls >= MAX_CALLS)
      throw invalidUsage(
        `${MAX_CALLS} calls of the session ${this.id} wait already`,
        "wait for one of them, or cancel it",
      );
    this.#calls++;
    clearTimeout(this.#idle);
  }

  /**
   * Takes the turn that was reserved, after those that were reserved before. A failure of the turn is in the
   * result. Error: the reason of the caller's signal if it aborts before the turn.
   */
  async takeTurn(prompt: string, caller: Caller): Promise<TurnResult> {
    using either = new AnySignal([caller.signal, this.#stop.signal]);
    const { signal } = either;
    try {
      return await this.#turns.pass(() => this.#runTurn(prompt, { ...caller, signal }), { width: 1, signal });
    } finally {
      this.#calls--;
      this.lastUsedAt = performance.now();
      if (this.isIdle && !this.#stop.signal.aborted) this.#awaitIdleness();
    }
  }

  /** Interrupts what is running. Everything that the session started has ended when this resolves. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    this.#stop.abort(new BrigError("the session is being closed", { code: "aborted" }));
    const over = new AbortController();
    const settled = this.#turns.pass(async () => undefined, { width: 1 });
    await Promise.race([settled, pause(SETTLE_MS, over.signal).catch(() => undefined)]);
    over.abort();
    await this.#conversation.close();
  }

  async #runTurn(prompt: string, caller: Caller): Promise<TurnResult> {
    this.#people.current = { caller, turnId: () => this.#events.turnId };
    try {
      if (!this.#isConfigured) this.#tell([this.#events.configured()]);
      this.#isConfigured = true;
      this.#tell(this.#events.begin(prompt));
      return await this.#conversation.runTurn({ prompt, signal: caller.signal });
    } finally {
      this.#people.current = null;
    }
  }

  #follow(event: AgentEvent): void {
    this.#tell(this.#events.translate(event));
  }

  /**
   * Between turns there is no caller, so events such as the end of a command that was left running are
   * dropped.
   */
  #tell(events: readonly CodexEvent[]): void {
    const caller = this.#people.current?.caller;
    for (const event of events) caller?.onEvent(event);
  }

  #awaitIdleness(): void {
    this.#idle = setTimeout(() => {
      void this.#turns
        .pass(async () => await this.#conversation.releaseSandbox(), { width: 1, signal: this.#stop.signal })
        .catch(() => undefined);
    }, this.#idleMs);
    this.#idle.unref();
  }
}
