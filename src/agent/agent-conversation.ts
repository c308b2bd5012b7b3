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
import type { ApprovalSituation } from "./approvals/approvals.js";
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
import { openSessionTools } from "./session-tools.js";
import { createThreadId } from "./thread-id.js";
import { Transcript } from "./turn/transcript.js";
import { DEFAULT_TURN_TIMEOUT_MS, openTurn, type Turn, type TurnEnding } from "./turn/turn.js";
import { recordEnding, type TurnContext, takeTurn } from "./turn/turn-loop.js";
import { Workplace } from "./turn/workplace.js";

/** A session in progress: its workplace, its transcript, and the turns that it takes one after the other. */
export class AgentConversation implements Conversation {
  readonly threadId: string;
  readonly #options: ConversationOptions;
  readonly #now: () => Date;
  readonly #random: () => number;
  readonly #transcript: Transcript;
  readonly #contextMessages: ContextMessages;
  readonly #escalated: EscalatedSandbox | null;
  readonly #approvals: LazyApprovals;
  readonly #compactor: Compactor;
  #setting: SessionSetting;
  readonly #recorder: SessionRecorder;
  #workplace: Workplace;
  #turn: Turn | null = null;
  #turns: number;
  #wasInterrupted = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
    this.#random = options.random ?? Math.random;
    this.threadId = options.threadId ?? createThreadId(this.#now());
    this.#setting = options.setting;
    this.#transcript = new Transcript({
      log: options.session ?? noSessionLog,
      onEvent: options.onEvent,
      truncation: this.#truncation,
      fixedTokens: tokensOfBytes(Buffer.byteLength(this.#instructions)),
      initialItems: options.initialItems,
      usage: options.earlierUse?.usage,
    });
    this.#recorder = new SessionRecorder(this.#transcript, {
      threadId: this.threadId,
      provider: options.model.provider,
      isContinued: options.initialItems !== undefined,
      recordsTree: options.recordsTree === true,
      now: this.#now,
    });
    this.#turns = options.earlierUse?.turns ?? 0;
    this.#compactor = new Compactor({
      ...options.compaction,
      model: options.model,
      instructions: this.#instructions,
      transcript: this.#transcript,
      random: this.#random,
    });
    const sentContext = options.sentContext ?? options.toldContext ?? null;
    this.#contextMessages = new ContextMessages(options.context ?? {}, sentContext);
    this.#escalated = this.#openEscalated();
    this.#approvals = lazyApprovals({ situation: () => this.#situation(), approver: options.approver });
    this.#workplace = this.#openWorkplace(options.sandbox);
    this.#checkAuthority(options.setting);
  }

  get authority(): SessionAuthority {
    return authorityOf(this.#setting, this.tools, this.#options.parent?.protectedNames);
  }

  get sessionFile(): string | null {
    return this.#transcript.sessionFile;
  }

  get setting(): SessionSetting {
    return this.#setting;
  }

  get sandbox(): Promise<AgentSandbox> {
    return this.#workplace.sandbox.ready;
  }

  get sandboxStartMs(): number | null {
    return this.#workplace.started?.startMs ?? null;
  }

  get tools(): ToolRegistry {
    return this.#workplace.tools;
  }

  get usage(): TokenUsage {
    return this.#transcript.usage;
  }

  get room(): { usedTokens: number; windowTokens: number | null } {
    return { usedTokens: this.#transcript.tokens, windowTokens: this.#compactor.windowTokens };
  }

  get #instructions(): string {
    return this.#options.instructions ?? defaultInstructions;
  }

  get #truncation(): TruncationPolicy {
    return this.#options.truncation ?? profileOf(this.#options.model.model).truncation;
  }

  async runTurn(input: TurnInput): Promise<TurnResult> {
    refuseUnknownOptions(input, turnInputNames, { of: "runTurn" });
    if (this.#turn !== null) throw new TypeError("one turn at a time");
    using turn = this.#openTurn(input.signal);
    this.#turn = turn;
    try {
      await this.#replaceLostWorkplace();
      const ending = await this.#takeTurn(input, turn);
      if (input.isLast === true) await this.tools.close();
      return this.#conclude(turn, ending);
    } finally {
      this.#turn = null;
    }
  }

  async compact({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<CompactionResult> {
    if (this.#turn !== null) throw new TypeError("a conversation is compacted between turns");
    using turn = this.#openTurn(signal);
    this.#turn = turn;
    try {
      const outcome = await this.#compactor.compact({ reason: "request", signal: turn.signal });
      if (outcome.kind === "compacted") this.#contextMessages.forget();
      return outcome;
    } catch (error) {
      if (signal?.aborted) return { kind: "interrupted" };
      if (isBrigError(error)) return { kind: "failed", error };
      throw error;
    } finally {
      this.#turn = null;
    }
  }

  async changeSetting({ setting, sandbox }: SettingChange): Promise<void> {
    if (this.#turn !== null) throw new TypeError("a setting changes between turns");
    this.#checkAuthority(setting);
    this.#setting = setting;
    this.#approvals.forget();
    if (sandbox === undefined) return;
    this.#recorder.addReceipt(await this.#workplace.close());
    this.#workplace = this.#openWorkplace(sandbox);
  }

  async close(): Promise<void> {
    try {
      await this.#workplace.tools.close();
      // Whoever interrupts a session does not want to wait.
      if (!this.#wasInterrupted) await this.#recorder.tree(this.#workplace, this.#setting);
      await this.#closeSandboxes();
      this.#recorder.receipt();
    } finally {
      this.#options.session?.close();
    }
  }

  async #closeSandboxes(): Promise<void> {
    this.#recorder.closed(await Promise.allSettled([this.#workplace.close(), this.#escalated?.close()]));
  }

  #checkAuthority(setting: SessionSetting): void {
    const { parent } = this.#options;
    if (parent !== undefined)
      checkAgainstParent(parent, authorityOf(setting, this.tools, parent.protectedNames));
  }

  /** A sandbox that cannot start ends the turn at once, whatever the model is doing. */
  #openWorkplace(source: SandboxSource): Workplace {
    return new Workplace(source, {
      openTools: (ready) => this.#openTools(ready),
      onStart: (sandbox, startMs) => {
        this.#recorder.started(sandbox, { startMs, network: this.#setting.network });
      },
      onFailure: (error) => {
        this.#turn?.stop.abort(error);
      },
    });
  }

  #openEscalated(): EscalatedSandbox | null {
    const { escalatedSandbox } = this.#options;
    if (escalatedSandbox === undefined) return null;
    return new EscalatedSandbox(escalatedSandbox, (sandbox, startMs) => {
      this.#recorder.escalated(sandbox, startMs);
    });
  }

  #situation(): ApprovalSituation {
    const { sandboxMode, approvalPolicy = "never", network } = this.#setting;
    return {
      policy: approvalPolicy,
      isRestricted: sandboxMode !== "danger-full-access",
      canEscalate: this.#escalated !== null,
      hasNetwork: network.kind !== "none",
    };
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

  #openTurn(outside: AbortSignal | undefined): Turn {
    const timeoutMs = this.#options.turnTimeoutMs ?? DEFAULT_TURN_TIMEOUT_MS;
    return openTurn(createThreadId(this.#now()), { outside, timeoutMs });
  }

  /** A sandbox that died, or never started, is made anew where that is ours to do. */
  async #replaceLostWorkplace(): Promise<void> {
    const { isLost, source } = this.#workplace;
    if (!isLost || !this.#recorder.hasBegun || typeof source !== "function") return;
    await this.#closeSandboxes();
    this.#workplace = this.#openWorkplace(source);
  }

  async #takeTurn(input: TurnInput, turn: Turn): Promise<TurnEnding> {
    this.#transcript.beginTurn();
    this.#recorder.begin(this.#workplace, { setting: this.#setting, instructions: this.#instructions });
    try {
      await takeTurn(input, this.#contextOf(turn));
      return { status: "completed" };
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) this.#workplace.isLost = true;
      // `aborted` is a person's answer to a question: not this, and nothing more.
      if (input.signal?.aborted || isBrigError(error, "aborted")) return { status: "interrupted" };
      if (isBrigError(error)) return { status: "failed", error };
      throw error;
    }
  }

  #contextOf(turn: Turn): TurnContext {
    const { model, outputSchema } = this.#options;
    const { sandbox, tools } = this.#workplace;
    return {
      ...turn,
      model,
      tools,
      sandboxReady: sandbox.ready,
      transcript: this.#transcript,
      contextMessages: this.#contextMessages,
      compactor: this.#compactor,
      setting: this.#setting,
      instructions: this.#instructions,
      truncation: this.#truncation,
      outputSchema,
      now: this.#now,
      random: this.#random,
    };
  }

  #conclude({ id }: Turn, ending: TurnEnding): TurnResult {
    const transcript = this.#transcript;
    const { usage, lastMessage, toolCalls, callLatenciesMs } = transcript;
    recordEnding(ending, { id, transcript });
    const { status } = ending;
    this.#turns++;
    this.#wasInterrupted = status === "interrupted";
    const { model } = this.#options.model;
    transcript.keep(turnRecord({ turnId: id, number: this.#turns, status, model }));
    return { ...ending, lastMessage, usage, toolCalls, callLatenciesMs };
  }
}
