import { isBrigError } from "../errors.js";
import { refuseUnknownOptions } from "../known-options.js";
import type { TokenUsage } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import { type TruncationPolicy, tokensOfBytes } from "../output/truncation.js";
import type { SessionAuthority } from "../policy/session-authority.js";
import type { SessionSetting } from "../session/setting.js";
import { noSessionLog } from "../session/write/session-file.js";
import { turnRecord } from "../session/write/session-records.js";
import type { ToolRegistry } from "../tools/registry.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import { authorityOf, checkAgainstParent } from "./approvals/authority.js";
import { EscalatedSandbox } from "./approvals/escalated-sandbox.js";
import { type LazyApprovals, lazyApprovals } from "./approvals/lazy-approvals.js";
import { Compactor } from "./compaction/compactor.js";
import { ContextMessages } from "./context/context-messages.js";
import { defaultInstructions } from "./context/prompt.js";
import { turnInputNames } from "./conversation-option-names.js";
import type {
  CompactionResult,
  Conversation,
  ConversationOptions,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./conversation-options.js";
import { SessionRecorder } from "./session-recorder.js";
import { SessionSandbox } from "./session-sandbox.js";
import { openSessionTools } from "./session-tools.js";
import { createThreadId } from "./thread-id.js";
import { Transcript } from "./turn/transcript.js";
import { DEFAULT_TURN_TIMEOUT_MS, openTurn, type Turn, type TurnEnding } from "./turn/turn.js";
import { recordEnding, takeTurn } from "./turn/turn-loop.js";

/** A session in progress: its sandbox, its transcript, and the turns that it takes one after the other. */
export class AgentConversation implements Conversation {
  readonly threadId: string;
  readonly #options: ConversationOptions;
  readonly #instructions: string;
  readonly #truncation: TruncationPolicy;
  readonly #now: () => Date;
  readonly #random: () => number;
  readonly #transcript: Transcript;
  readonly #recorder: SessionRecorder;
  readonly #compactor: Compactor;
  readonly #contextMessages: ContextMessages;
  readonly #escalated: EscalatedSandbox | null;
  readonly #approvals: LazyApprovals;
  #setting: SessionSetting;
  #sandbox: SessionSandbox;
  #turn: Turn | null = null;
  #turns: number;
  #wasInterrupted = false;

  constructor(options: ConversationOptions) {
    const { model, setting, escalatedSandbox, earlierUse } = options;
    this.#options = options;
    this.#instructions = options.instructions ?? defaultInstructions;
    this.#truncation = options.truncation ?? profileOf(model.model).truncation;
    this.#now = options.now ?? (() => new Date());
    this.#random = options.random ?? Math.random;
    this.threadId = options.threadId ?? createThreadId(this.#now());
    this.#transcript = new Transcript({
      log: options.session ?? noSessionLog,
      onEvent: options.onEvent,
      truncation: this.#truncation,
      fixedTokens: tokensOfBytes(Buffer.byteLength(this.#instructions)),
      initialItems: options.initialItems,
      usage: earlierUse?.usage,
    });
    this.#recorder = new SessionRecorder(this.#transcript, {
      threadId: this.threadId,
      provider: model.provider,
      isContinued: options.initialItems !== undefined,
      recordsTree: options.recordsTree === true,
      now: this.#now,
    });
    this.#compactor = new Compactor({
      ...options.compaction,
      model,
      instructions: this.#instructions,
      transcript: this.#transcript,
      random: this.#random,
    });
    const sentContext = options.sentContext ?? options.toldContext ?? null;
    this.#contextMessages = new ContextMessages(options.context ?? {}, sentContext);
    this.#escalated =
      escalatedSandbox === undefined
        ? null
        : new EscalatedSandbox(escalatedSandbox, (sandbox, startMs) => {
            this.#recorder.escalated(sandbox, startMs);
          });
    this.#approvals = lazyApprovals({
      setting: () => this.#setting,
      canEscalate: escalatedSandbox !== undefined,
      approver: options.approver,
    });
    this.#turns = earlierUse?.turns ?? 0;
    this.#setting = setting;
    this.#sandbox = this.#openSandbox(options.sandbox);
    this.#checkAuthority(setting);
  }

  get authority(): SessionAuthority {
    return this.#authorityIn(this.#setting);
  }

  get sessionFile(): string | null {
    return this.#transcript.sessionFile;
  }

  get setting(): SessionSetting {
    return this.#setting;
  }

  get sandbox(): Promise<AgentSandbox> {
    return this.#sandbox.ready;
  }

  get sandboxStartMs(): number | null {
    return this.#sandbox.started?.startMs ?? null;
  }

  get tools(): ToolRegistry {
    return this.#sandbox.tools;
  }

  get usage(): TokenUsage {
    return this.#transcript.usage;
  }

  get room(): { usedTokens: number; windowTokens: number | null } {
    return { usedTokens: this.#transcript.tokens, windowTokens: this.#compactor.windowTokens };
  }

  async runTurn(input: TurnInput): Promise<TurnResult> {
    refuseUnknownOptions(input, turnInputNames, { of: "runTurn" });
    this.#refuseDuringTurn("one turn at a time");
    using turn = this.#openTurn(input.signal);
    await this.#replaceLostSandbox();
    const ending = await this.#takeTurn(input, turn);
    if (input.isLast === true) await this.tools.close();
    return this.#conclude(turn, ending);
  }

  async compact({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<CompactionResult> {
    this.#refuseDuringTurn("a conversation is compacted between turns");
    using turn = this.#openTurn(signal);
    try {
      const outcome = await this.#compactor.compact({ reason: "request", signal: turn.signal });
      if (outcome.kind === "compacted") this.#contextMessages.forget();
      return outcome;
    } catch (error) {
      if (signal?.aborted) return { kind: "interrupted" };
      if (isBrigError(error)) return { kind: "failed", error };
      throw error;
    }
  }

  async changeSetting({ setting, sandbox }: SettingChange): Promise<void> {
    this.#refuseDuringTurn("a setting changes between turns");
    this.#checkAuthority(setting);
    this.#setting = setting;
    this.#approvals.forget();
    if (sandbox === undefined) return;
    this.#recorder.addReceipt(await this.#sandbox.close());
    this.#sandbox = this.#openSandbox(sandbox);
  }

  async close(): Promise<void> {
    try {
      await this.tools.close();
      // Somebody who interrupts a session does not want to wait.
      if (!this.#wasInterrupted) await this.#recorder.tree(this.#sandbox, this.#setting);
      await this.#closeSandboxes();
      this.#recorder.receipt();
    } finally {
      this.#options.session?.close();
    }
  }

  #refuseDuringTurn(message: string): void {
    if (this.#turn !== null) throw new TypeError(message);
  }

  #authorityIn(setting: SessionSetting): SessionAuthority {
    return authorityOf(setting, this.tools, this.#options.parent?.protectedNames);
  }

  #checkAuthority(setting: SessionSetting): void {
    const { parent } = this.#options;
    if (parent !== undefined) checkAgainstParent(parent, this.#authorityIn(setting));
  }

  #openSandbox(source: SandboxSource): SessionSandbox {
    return new SessionSandbox(source, {
      openTools: (ready) => this.#openTools(ready),
      onStart: (sandbox, startMs) => {
        this.#recorder.started(sandbox, { startMs, network: this.#setting.network });
      },
      // Without a sandbox the turn is over, even while the model is still answering.
      onFailure: (error) => {
        this.#turn?.stop.abort(error);
      },
    });
  }

  #openTools(ready: Promise<AgentSandbox>): ToolRegistry {
    const { tools, toolOptions, model } = this.#options;
    const escalated = this.#escalated;
    if (tools !== undefined) return tools(ready);
    return openSessionTools(ready, {
      ...toolOptions,
      model,
      setting: this.#setting,
      threadId: this.threadId,
      truncation: this.#truncation,
      review: this.#approvals,
      escalatedSandbox: escalated === null ? undefined : () => escalated.get(),
    });
  }

  async #closeSandboxes(): Promise<void> {
    this.#recorder.closed(await Promise.allSettled([this.#sandbox.close(), this.#escalated?.close()]));
  }

  /** Only a sandbox that a function opened can be opened again. */
  async #replaceLostSandbox(): Promise<void> {
    const { isLost, source } = this.#sandbox;
    if (!isLost || !this.#recorder.hasBegun || typeof source !== "function") return;
    await this.#closeSandboxes();
    this.#sandbox = this.#openSandbox(source);
  }

  #openTurn(outside: AbortSignal | undefined): Turn {
    this.#turn = openTurn(createThreadId(this.#now()), {
      outside,
      timeoutMs: this.#options.turnTimeoutMs ?? DEFAULT_TURN_TIMEOUT_MS,
      onDispose: () => {
        this.#turn = null;
      },
    });
    return this.#turn;
  }

  async #takeTurn(input: TurnInput, turn: Turn): Promise<TurnEnding> {
    const { model, outputSchema } = this.#options;
    this.#transcript.beginTurn();
    this.#recorder.begin(this.#sandbox, { setting: this.#setting, instructions: this.#instructions });
    try {
      await takeTurn(input, {
        ...turn,
        model,
        tools: this.tools,
        sandboxReady: this.#sandbox.ready,
        transcript: this.#transcript,
        contextMessages: this.#contextMessages,
        compactor: this.#compactor,
        setting: this.#setting,
        instructions: this.#instructions,
        truncation: this.#truncation,
        outputSchema,
        now: this.#now,
        random: this.#random,
      });
      return { status: "completed" };
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) this.#sandbox.isLost = true;
      // `aborted` means that a person answered a question by ending the turn.
      if (input.signal?.aborted || isBrigError(error, "aborted")) return { status: "interrupted" };
      if (isBrigError(error)) return { status: "failed", error };
      throw error;
    }
  }

  #conclude({ id }: Turn, ending: TurnEnding): TurnResult {
    const transcript = this.#transcript;
    const { usage, lastMessage, toolCalls, callLatenciesMs } = transcript;
    const { status } = ending;
    recordEnding(ending, { id, transcript });
    this.#turns++;
    this.#wasInterrupted = status === "interrupted";
    const { model } = this.#options.model;
    transcript.keep(turnRecord({ turnId: id, number: this.#turns, status, model }));
    return { ...ending, lastMessage, usage, toolCalls, callLatenciesMs };
  }
}
