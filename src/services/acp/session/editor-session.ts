import type {
  ContentBlock,
  PromptResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import type {
  Conversation,
  ModelChoice,
  SandboxSource,
  SessionSetting,
  TurnResult,
} from "../../../agent/index.js";
import { DEFAULT_MODEL, openConversation } from "../../../agent/index.js";
import { BrigError } from "../../../errors.js";
import type { ImageResizer } from "../../../tools/index.js";
import type { ClientLink } from "../client-link.js";
import { invalidParams } from "../rpc-error.js";
import type { PreparedSession, SessionCommand } from "../session-opener.js";
import { EventUpdates } from "../updates/event-updates.js";
import { historyUpdates } from "../updates/history-updates.js";
import { titleText } from "../updates/shown-text.js";
import { UpdateQueue } from "../updates/update-queue.js";
import { configOptions, modeIdOf, modeOf, modeState, withChoice } from "./choices.js";
import { commandIn } from "./command-in.js";
import { LazySandbox } from "./lazy-sandbox.js";
import { type PromptContent, promptContent } from "./prompt-content.js";
import { SessionWork } from "./session-work.js";

interface SessionParts {
  prepared: PreparedSession;
  link: ClientLink;
  resizer: ImageResizer;
  /**
   * Called before the session's sandbox starts, so that the sandbox of an idle session can end. May throw to
   * keep it from starting.
   */
  beforeStart(session: EditorSession): void;
  /** Called when the client has stopped reading its updates. */
  onStuck(): void;
}

/** A conversation that an editor shows. It does one thing at a time: answer a prompt, or change a setting. */
export class EditorSession {
  readonly id: string;
  readonly #parts: SessionParts;
  readonly #conversation: Conversation;
  readonly #updates: UpdateQueue;
  readonly #events: EventUpdates;
  readonly #work = new SessionWork();
  /** Opens the sandbox of the current setting. */
  #source: SandboxSource;
  #sandbox: LazySandbox;
  #choice: ModelChoice;
  #hasTitle: boolean;
  #hasBegun = false;
  #isClosed = false;

  constructor(parts: SessionParts) {
    const { prepared, link } = parts;
    const { options, config, setting } = prepared;
    const { threadId } = options;
    this.id = threadId;
    this.#parts = parts;
    this.#updates = new UpdateQueue((update) => link.update(threadId, update), { onStuck: parts.onStuck });
    this.#events = new EventUpdates({
      features: link.features,
      cwd: setting.cwd,
      send: (update) => this.send(update),
    });
    this.#choice = { model: options.model.model, reasoningEffort: config.model_reasoning_effort };
    this.#source = options.sandbox;
    this.#sandbox = this.#lazily(options.sandbox);
    this.#hasTitle = (options.initialItems ?? []).length > 0;
    this.#conversation = openConversation({
      ...options,
      sandbox: this.#sandbox.source,
      onEvent: (event) => this.#events.take(event),
    });
  }

  get isBusy(): boolean {
    return this.#work.isBusy;
  }

  get hasSandbox(): boolean {
    return this.#sandbox.hasBegun;
  }

  /** When the last prompt ended, on the clock of `performance.now()`. */
  get lastUsed(): number {
    return this.#work.lastUsed;
  }

  get commands(): readonly SessionCommand[] {
    return this.#parts.prepared.commands;
  }

  get modes(): SessionModeState {
    return modeState(this.#parts.prepared.setting.sandboxMode, this.#conversation.setting.sandboxMode);
  }

  get configOptions(): SessionConfigOption[] {
    const { otherModels } = this.#parts.prepared;
    return otherModels === null ? [] : configOptions(this.#choice, this.#models);
  }

  /** The models to choose from, besides the current one. */
  get #models(): readonly string[] {
    const { model, provider } = this.#parts.prepared.options.model;
    return provider === "openai" ? [model, DEFAULT_MODEL] : [model];
  }

  /** Starts the sandbox, so that it is there when the first prompt comes. */
  start(): void {
    if (this.#sandbox.hasBegun) return;
    this.#parts.beforeStart(this);
    this.#sandbox.start();
  }

  /** Sends the earlier conversation. */
  async replay(): Promise<void> {
    const { initialItems = [] } = this.#parts.prepared.options;
    this.send(...historyUpdates(initialItems, this.#conversation.setting.cwd));
    await this.#updates.drained();
  }

  send(...updates: readonly SessionUpdate[]): void {
    if (!this.#isClosed) this.#updates.push(...updates);
  }

  /**
   * Sends after the answer to `session/new`: before that answer, the client does not know the session's id.
   */
  sendLater(...updates: readonly SessionUpdate[]): void {
    setImmediate(() => this.send(...updates));
  }

  /** Resolves when every update so far has been written to the client. */
  async sent(): Promise<void> {
    await this.#updates.drained();
  }

  /**
   * Runs one turn, or a command such as `/status`. Errors: -32600 while another prompt runs; the error of a
   * turn that fails.
   */
  async prompt(blocks: readonly ContentBlock[], request: AbortSignal): Promise<PromptResponse> {
    return await this.#work.prompt(async (signal) => {
      const { resizer, prepared } = this.#parts;
      const content = await promptContent(blocks, { resizer, signal }).catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
      if (content === null) return { stopReason: "cancelled" };
      this.start();
      const command = commandIn(content.text, prepared.commands);
      if (command === null) this.#sendTitle(content.text);
      const stopReason =
        command === null ? await this.#runTurn(content, signal) : await this.#runCommand(command, signal);
      this.#sendUsage();
      await this.#updates.drained();
      return { stopReason };
    }, request);
  }

  /** Ends the running prompt, which then answers that it was cancelled. */
  cancel(): void {
    this.#work.stop(new BrigError("the client has cancelled the prompt", { code: "aborted" }));
  }

  /**
   * Changes the mode, which replaces the container. Errors: -32602 for an unknown mode, -32600 during a
   * prompt.
   */
  async setMode(id: string): Promise<void> {
    const { prepared } = this.#parts;
    const wanted = modeOf(id, prepared.setting.sandboxMode);
    if (wanted === null) throw invalidParams(`there is no mode ${JSON.stringify(id.slice(0, 100))}`);
    await this.#work.change(async () => {
      const isCurrent = modeIdOf(this.#conversation.setting.sandboxMode) === modeIdOf(wanted);
      if (!isCurrent) {
        const { hasBegun } = this.#sandbox;
        const next =
          wanted === "started"
            ? { setting: prepared.setting, sandbox: prepared.options.sandbox }
            : await prepared.inMode(wanted);
        await this.#replaceSandbox(next);
        if (hasBegun) this.#sandbox.start();
      }
      this.send({
        sessionUpdate: "current_mode_update",
        currentModeId: modeIdOf(this.#conversation.setting.sandboxMode),
      });
    });
  }

  /** Errors: -32602 for an unknown option or value, -32600 during a prompt. */
  async setConfigOption(id: string, value: string | boolean): Promise<SessionConfigOption[]> {
    return await this.#work.change(async () => {
      const { otherModels } = this.#parts.prepared;
      const choice =
        otherModels === null ? null : withChoice(this.#choice, { id, value, models: this.#models });
      if (otherModels === null || choice === null)
        throw invalidParams(`there is no option ${JSON.stringify(id.slice(0, 100))} with such a value`);
      this.#conversation.changeModel(await otherModels.open(choice));
      this.#choice = choice;
      return this.configOptions;
    });
  }

  /** Ends the sandbox, and everything in it, until the next prompt. */
  async rest(): Promise<void> {
    await this.#work.change(async () => {
      if (!this.#sandbox.hasBegun) return;
      // Only a conversation that has begun opens a sandbox again by itself.
      if (!this.#hasBegun)
        return await this.#replaceSandbox({ setting: this.#conversation.setting, sandbox: this.#source });
      await this.#conversation.releaseSandbox();
      this.#sandbox.released();
    });
  }

  /** Ends what is running, and resolves when nothing of the session is left. */
  async close(): Promise<void> {
    this.#sandbox.giveUp();
    await this.#work.close(new BrigError("the session is closed", { code: "aborted" }));
    this.#sandbox.giveUp();
    try {
      await this.#conversation.close();
    } finally {
      this.#isClosed = true;
      this.#events.close();
    }
  }

  async #runTurn({ text, images }: PromptContent, signal: AbortSignal): Promise<StopReason> {
    this.#hasBegun = true;
    const result = await this.#conversation.runTurn({ prompt: text, images, signal });
    return stopReasonOf(result);
  }

  async #runCommand(command: SessionCommand, signal: AbortSignal): Promise<StopReason> {
    try {
      const text = await command.run(this.#conversation, { signal });
      this.send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return signal.aborted ? "cancelled" : "end_turn";
  }

  async #replaceSandbox(next: { setting: SessionSetting; sandbox: SandboxSource }): Promise<void> {
    this.#sandbox.giveUp();
    this.#source = next.sandbox;
    this.#sandbox = this.#lazily(next.sandbox);
    await this.#conversation.changeSetting({ setting: next.setting, sandbox: this.#sandbox.source });
  }

  #lazily(source: SandboxSource): LazySandbox {
    const sandbox = new LazySandbox(async () => await (typeof source === "function" ? source() : source));
    // If the session was closed during a change, nobody will start this sandbox, so waiting for it must fail
    // at once.
    if (this.#work.isClosed) sandbox.giveUp();
    return sandbox;
  }

  #sendTitle(prompt: string): void {
    if (this.#hasTitle) return;
    this.#hasTitle = true;
    this.send({
      sessionUpdate: "session_info_update",
      title: titleText(prompt) || null,
      updatedAt: new Date().toISOString(),
    });
  }

  #sendUsage(): void {
    const { usedTokens, windowTokens } = this.#conversation.room;
    if (windowTokens === null) return;
    this.send({
      sessionUpdate: "usage_update",
      used: Math.max(0, Math.round(usedTokens)),
      size: windowTokens,
    });
  }
}

/** The protocol's name for how a turn ended. Throws the error of a turn that failed. */
function stopReasonOf({ status, error }: TurnResult): StopReason {
  switch (status) {
    case "completed":
      return "end_turn";
    case "interrupted":
      return "cancelled";
    case "failed":
      throw error ?? new TypeError("a turn that failed has an error");
    default:
      return status satisfies never;
  }
}
