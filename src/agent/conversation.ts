import { isBrigError } from "../errors.js";
import { beforeAbort } from "../lib/before-abort.js";
import { pause } from "../lib/pause.js";
import { retryDelayMs } from "../model/backoff.js";
import type { TokenUsage } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import type { SessionAuthority } from "../policy/session-authority.js";
import type { ToolRegistry } from "../tools/registry.js";
import { type TruncationPolicy, tokensOfBytes } from "../tools/truncation.js";
import { readVersion } from "../version.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import type { ApprovalSituation } from "./approvals.js";
import { authorityOf, checkAgainstParent } from "./authority.js";
import { type CompactionOutcome, Compactor } from "./compactor.js";
import { ContextTeller, type TellingPlace } from "./context-teller.js";
import { itemTokens } from "./context-tokens.js";
import type {
  CompactionResult,
  Conversation,
  ConversationOptions,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./conversation-options.js";
import { EscalatedSandbox } from "./escalated-sandbox.js";
import type { CompactionReason } from "./events.js";
import { type LateApprovals, lateApprovals } from "./late-approvals.js";
import { abortedTurnMessage, defaultInstructions, type SessionSetting, userMessage } from "./prompt.js";
import { type ResponseContext, type ResponseEnd, readResponse } from "./read-response.js";
import { noSessionLog } from "./session-file.js";
import * as records from "./session-records.js";
import { openSessionTools } from "./session-tools.js";
import { describeTree, recordedTreeLimits, treeRecord } from "./session-tree.js";
import { createThreadId } from "./thread-id.js";
import { Transcript } from "./transcript.js";
import { openTurn, type Turn, type TurnEnding } from "./turn.js";
import { Workplace } from "./workplace.js";

/** Starts its sandbox at once. A session that may do more than its `parent` is `policy.invalid`, and nothing starts. Close it. */
export function openConversation(options: ConversationOptions): Conversation {
  const { sandbox } = options;
  if (options.parent === undefined || typeof sandbox !== "function") return new AgentConversation(options);
  // Nothing starts before it is known that it may.
  let allow: () => void = () => undefined;
  const allowed = new Promise<void>((resolve) => {
    allow = resolve;
  });
  const conversation = new AgentConversation({ ...options, sandbox: () => allowed.then(sandbox) });
  allow();
  return conversation;
}

class AgentConversation implements Conversation {
  readonly threadId: string;
  readonly #options: ConversationOptions;
  readonly #now: () => Date;
  readonly #transcript: Transcript;
  readonly #teller: ContextTeller;
  readonly #escalated: EscalatedSandbox | null;
  readonly #approvals: LateApprovals;
  readonly #compactor: Compactor;
  #setting: SessionSetting;
  #workplace: Workplace;
  #hasBegun = false;
  #turn: Turn | null = null;
  #turns: number;
  #wasInterrupted = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
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
    this.#turns = options.earlierUse?.turns ?? 0;
    this.#compactor = new Compactor({
      ...options.compaction,
      model: options.model,
      instructions: this.#instructions,
      transcript: this.#transcript,
      random: options.random ?? Math.random,
    });
    this.#teller = new ContextTeller(options.context ?? {}, options.toldContext ?? null);
    this.#escalated = this.#openEscalated();
    this.#approvals = lateApprovals({ situation: () => this.#situation(), approver: options.approver });
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
    if (this.#turn !== null) throw new TypeError("one turn at a time");
    const turn = openTurn(createThreadId(this.#now()), input.signal);
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
    const turn = openTurn(createThreadId(this.#now()), signal);
    this.#turn = turn;
    try {
      const outcome = await this.#compactor.compact({ reason: "request", signal: turn.signal });
      if (outcome.kind === "compacted") this.#teller.forget();
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
    await this.#workplace.close();
    this.#workplace = this.#openWorkplace(sandbox);
  }

  async close(): Promise<void> {
    try {
      await this.#workplace.tools.close();
      await this.#recordTree();
      await Promise.all([this.#workplace.close(), this.#escalated?.close()]);
    } finally {
      this.#options.session?.close();
    }
  }

  /** What the session leaves behind, for who runs it again. Whoever interrupts it does not want to wait. */
  async #recordTree(): Promise<void> {
    const { started, isLost } = this.#workplace;
    const isWanted = this.#options.recordsTree === true && this.sessionFile !== null && this.#hasBegun;
    if (!isWanted || started === null || isLost || this.#wasInterrupted) return;
    const tree = await describeTree(started.sandbox, this.#setting.cwd, { limits: recordedTreeLimits });
    this.#transcript.keep(treeRecord(tree));
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
        if (this.#hasBegun) this.#tellOfSandbox(sandbox, startMs);
      },
      onFailure: (error) => {
        this.#turn?.stop.abort(error);
      },
    });
  }

  #openEscalated(): EscalatedSandbox | null {
    const { escalatedSandbox } = this.#options;
    if (escalatedSandbox === undefined) return null;
    return new EscalatedSandbox(escalatedSandbox, ({ id, image, proof }, startMs) => {
      this.#transcript.keep(records.sandboxRecord({ id, image, proof, startMs, isEscalated: true }));
      this.#transcript.keep(records.egressRecord(id, { kind: "full" }));
    });
  }

  async #escalatedSandbox(): Promise<AgentSandbox> {
    if (this.#escalated === null) throw new TypeError("nothing leaves a sandbox that has no other beside it");
    return await this.#escalated.get();
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
    if (tools !== undefined) return tools(ready);
    return openSessionTools(ready, {
      ...toolOptions,
      model,
      setting: this.#setting,
      threadId: this.threadId,
      truncation: this.#truncation,
      review: this.#approvals,
      ...(this.#escalated === null ? {} : { escalatedSandbox: () => this.#escalatedSandbox() }),
    });
  }

  #tellOfSandbox({ id, image, proof }: AgentSandbox, startMs: number): void {
    this.#transcript.keep(records.sandboxRecord({ id, image, proof, startMs }));
    if (this.#setting.network.kind !== "none")
      this.#transcript.keep(records.egressRecord(id, this.#setting.network));
    this.#transcript.emit({ kind: "sandbox-ready", sandboxId: id, startMs });
  }

  /** A sandbox that died, or never started, is made anew where that is ours to do. */
  async #replaceLostWorkplace(): Promise<void> {
    const { isLost, source } = this.#workplace;
    if (!isLost || !this.#hasBegun || typeof source !== "function") return;
    await this.#escalated?.close();
    await this.#workplace.close();
    this.#workplace = this.#openWorkplace(source);
  }

  async #takeTurn(input: TurnInput, turn: Turn): Promise<TurnEnding> {
    const { model } = this.#options;
    const { sandbox, tools } = this.#workplace;
    const context = { ...turn, model, tools, sandboxReady: sandbox.ready, transcript: this.#transcript };
    try {
      await this.#begin(input, turn);
      await this.#converse(context, turn);
      // Even a turn without calls is not done in a sandbox that could not be made.
      await beforeAbort(sandbox.ready, turn.signal);
      return { status: "completed" };
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) this.#workplace.isLost = true;
      // `aborted` is a person's answer to a question: not this, and nothing more.
      if (input.signal?.aborted || isBrigError(error, "aborted")) return { status: "interrupted" };
      if (isBrigError(error)) return { status: "failed", error };
      throw error;
    }
  }

  /** Everything the model and the session file are told before the first request of a turn. */
  async #begin({ prompt, images = [] }: TurnInput, turn: Turn): Promise<void> {
    const transcript = this.#transcript;
    const asked = userMessage(prompt, images);
    const isFirst = !this.#hasBegun;
    transcript.beginTurn();
    if (isFirst) this.#beginSession();
    transcript.keep(records.turnStartedEvent(turn.id));
    transcript.emit({ kind: "turn-started" });
    const { signal } = turn;
    const { kind } = await this.#compactor.compactIfFull({ signal }, { comingTokens: itemTokens(asked) });
    if (kind === "compacted") this.#teller.forget();
    try {
      await this.#tellContext(turn);
    } finally {
      transcript.recordItem(asked);
      transcript.keep(records.userMessageEvent(asked));
    }
  }

  async #tellContext(turn: Turn): Promise<void> {
    const now = this.#now();
    const context = await this.#teller.next(this.#placeToTell(now, turn.signal));
    this.#keepTurnContext(turn, now);
    for (const item of context) this.#transcript.recordItem(item);
  }

  /** Whoever resumes the session knows from it what the model was told last. */
  #keepTurnContext({ id: turnId }: Turn, now: Date): void {
    const { model } = this.#options.model;
    const about = { turnId, setting: this.#setting, model, truncation: this.#truncation, now };
    this.#transcript.keep(records.turnContext(about));
  }

  #placeToTell(now: Date, signal: AbortSignal): TellingPlace {
    const { ready } = this.#workplace.sandbox;
    return {
      setting: this.#setting,
      now,
      files: async () => (await beforeAbort(ready, signal)).files,
      signal,
      onWarning: (message) => {
        this.#transcript.emit({ kind: "warning", message });
      },
    };
  }

  #beginSession(): void {
    const { threadId } = this;
    const { model, initialItems } = this.#options;
    const instructions = this.#instructions;
    const meta = { threadId, cwd: this.#setting.cwd, version: readVersion(), provider: model.provider };
    if (initialItems === undefined)
      this.#transcript.keep(records.sessionMeta({ ...meta, instructions, startedAt: this.#now() }));
    this.#hasBegun = true;
    this.#transcript.emit({ kind: "session-started", threadId, sessionFile: this.sessionFile });
    const { started } = this.#workplace;
    if (started !== null) this.#tellOfSandbox(started.sandbox, started.startMs);
  }

  /** Asks until a response calls no tool. */
  async #converse(context: ResponseContext, turn: Turn): Promise<void> {
    for (;;) {
      const { callCount } = await this.#respond(context, turn);
      if (callCount === 0) return;
      await this.#makeRoom("limit", turn);
    }
  }

  /**
   * Asks once. A response that broke off is asked for again, with all that it had completed; one that cannot be had for the length of the
   * conversation, with a summary.
   */
  async #respond(context: ResponseContext, turn: Turn): Promise<ResponseEnd & { kind: "completed" }> {
    const { model, transcript, tools, signal } = context;
    const { outputSchema, random = Math.random } = this.#options;
    const instructions = this.#instructions;
    const maxAttempts = model.maxStreamRetries;
    let hasMadeRoom = false;
    for (let attempt = 1; ; attempt++) {
      const request = { instructions, input: transcript.toInput(), tools: tools.getSpecs(), outputSchema };
      const end = await readResponse(request, context);
      if (end.kind === "completed") return end;
      if (end.kind === "overflow") {
        if (hasMadeRoom || (await this.#makeRoom("overflow", turn)).kind === "nothing") throw end.error;
        hasMadeRoom = true;
        continue;
      }
      if (attempt > maxAttempts) throw end.error;
      const delayMs = retryDelayMs(attempt, { retryAfterMs: end.retryAfterMs, random });
      transcript.emit({ kind: "reconnecting", attempt, maxAttempts, delayMs, reason: end.error.message });
      await pause(delayMs, signal);
    }
  }

  /** In the middle of a turn the model is told at once again what the summary leaves out. */
  async #makeRoom(reason: Exclude<CompactionReason, "request">, turn: Turn): Promise<CompactionOutcome> {
    const { signal } = turn;
    const now = this.#now();
    const context = () => this.#teller.everything(this.#placeToTell(now, signal));
    const outcome =
      reason === "limit"
        ? await this.#compactor.compactIfFull({ signal, context })
        : await this.#compactor.compact({ signal, context, reason });
    if (outcome.kind === "compacted") this.#keepTurnContext(turn, now);
    return outcome;
  }

  #conclude({ id }: Turn, ending: TurnEnding): TurnResult {
    const transcript = this.#transcript;
    const { usage, lastMessage, toolCalls, callLatenciesMs } = transcript;
    switch (ending.status) {
      case "completed":
        transcript.keep(records.turnCompletedEvent(id, lastMessage));
        transcript.emit({ kind: "turn-completed", usage });
        break;
      case "interrupted":
        transcript.recordItem(abortedTurnMessage());
        transcript.keep(records.turnAbortedEvent(id));
        transcript.emit({ kind: "turn-interrupted" });
        break;
      case "failed":
        transcript.keep(records.errorEvent(ending.error.message));
        transcript.emit({ kind: "turn-failed", error: ending.error });
        break;
      default:
        ending satisfies never;
    }
    const { status } = ending;
    this.#turns++;
    this.#wasInterrupted = status === "interrupted";
    const { model } = this.#options.model;
    transcript.keep(records.turnRecord({ turnId: id, number: this.#turns, status, model }));
    return { ...ending, lastMessage, usage, toolCalls, callLatenciesMs };
  }
}
