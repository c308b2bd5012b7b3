import { isBrigError } from "../errors.js";
import { refuseUnknownOptions } from "../known-options.js";
import type { RestorePointOptions, SessionAuthority } from "../sandbox/index.js";
import type { McpServers, ToolRegistry } from "../tools/index.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import { type AgentPlace, conversationAgents, withOneQuestionAtATime } from "./agents/conversation-agents.js";
import type { LazyAgents } from "./agents/lazy-agents.js";
import { SessionApprovals, situationIn } from "./approvals/approvals.js";
import { authorityOf, checkAgainstParent } from "./approvals/authority.js";
import { EscalatedSandbox } from "./approvals/escalated-sandbox.js";
import { turnInputNames } from "./conversation-option-names.js";
import type {
  AddedMessage,
  CompactionResult,
  Conversation,
  ConversationOptions,
  ModelChange,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./conversation-options.js";
import { type ConversationParts, conversationParts, partsForModel } from "./conversation-parts.js";
import { lazyHostQuestions } from "./egress/lazy-host-questions.js";
import { guardedStart } from "./guarded-start.js";
import { type ModelClient, noUsage, type TokenUsage } from "./model/model-client.js";
import type { UndoneChanges } from "./session/restore-point.js";
import type { SessionSetting } from "./session/setting.js";
import { SessionSandbox } from "./session-sandbox.js";
import { openServers, type SessionServers } from "./session-servers.js";
import { openSessionTools, toolsForModel } from "./session-tools.js";
import { createThreadId } from "./thread-id.js";
import { compactionResult, concludeTurn, endingOf } from "./turn/conclude-turn.js";
import { openTurn, type Turn, type TurnEnding } from "./turn/turn.js";
import { takeTurn } from "./turn/turn-loop.js";
import { takeUserCommand } from "./turn/user-command.js";

/** A session in progress: its sandbox, its transcript, and the turns that it takes one after the other. */
export class AgentConversation implements Conversation {
  readonly threadId: string;
  /** The agents of the session have the same object: another model is written into it. */
  readonly #options: ConversationOptions;
  #parts: ConversationParts;
  readonly #escalated: EscalatedSandbox | null;
  readonly #approvals: SessionApprovals;
  /** Null for a session that starts no agents. */
  readonly #agents: LazyAgents | null;
  #setting: SessionSetting;
  #sandbox: SessionSandbox;
  #turn: Turn | null = null;
  #turns: number;
  #wasInterrupted = false;

  /** `place` is null for a session, and says of an agent where it stands among those of its session. */
  constructor(given: ConversationOptions, place: AgentPlace | null = null) {
    const options = { ...(place === null ? withOneQuestionAtATime(given) : given) };
    const { setting, escalatedSandbox, earlierUse } = options;
    this.#options = options;
    this.#parts = conversationParts(options, place);
    this.threadId = this.#parts.threadId;
    const onEscalation = (sandbox: AgentSandbox, startMs: number) =>
      this.#parts.recorder.escalated(sandbox, startMs);
    this.#escalated =
      escalatedSandbox === undefined ? null : new EscalatedSandbox(escalatedSandbox, onEscalation);
    const situation = situationIn(setting, { canEscalate: this.#escalated !== null });
    this.#approvals = new SessionApprovals({ situation, approver: options.approver });
    this.#turns = earlierUse?.turns ?? 0;
    this.#setting = setting;
    this.#agents = this.#openAgents(place);
    this.#sandbox = this.#openSandbox(options.sandbox);
    this.#checkAuthority(setting);
  }

  get authority(): SessionAuthority {
    return this.#authorityIn(this.#setting);
  }

  get sessionFile(): string | null {
    return this.#parts.transcript.sessionFile;
  }

  get setting(): SessionSetting {
    return this.#setting;
  }

  get model(): ModelClient {
    return this.#options.model;
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

  get mcpServers(): McpServers | null {
    return this.#sandbox.servers?.servers ?? null;
  }

  get usage(): TokenUsage {
    return this.#parts.transcript.usage;
  }

  get agentUsage(): TokenUsage {
    return this.#agents?.usage ?? noUsage;
  }

  get room(): { usedTokens: number; windowTokens: number | null } {
    return { usedTokens: this.#parts.transcript.tokens, windowTokens: this.#parts.compactor.windowTokens };
  }

  async runTurn(input: TurnInput): Promise<TurnResult> {
    refuseUnknownOptions(input, turnInputNames, { of: "runTurn" });
    this.#refuseDuringTurn("one turn at a time");
    using turn = this.#openTurn(input.signal);
    await this.#parts.telemetry?.begin();
    await this.#replaceLostSandbox();
    const ending = await this.#takeTurn(input, turn);
    if (input.isLast === true)
      await Promise.all([this.#agents?.closeAll({ isFinal: true }), this.tools.close()]);
    else if (ending.status !== "completed") await this.#agents?.interrupt();
    this.#wasInterrupted = ending.status === "interrupted";
    const { model } = this.#options.model;
    const number = ++this.#turns;
    await this.#parts.recorder.flushEgress();
    return concludeTurn(ending, { id: turn.id, number, model, transcript: this.#parts.transcript });
  }

  async compact({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<CompactionResult> {
    this.#refuseDuringTurn("a conversation is compacted between turns");
    using turn = this.#openTurn(signal);
    await this.#parts.telemetry?.begin();
    const compacting = this.#parts.compactor.compact({ reason: "request", signal: turn.signal });
    const result = await compactionResult(compacting, signal);
    if (result.kind === "compacted") this.#parts.contextMessages.forget();
    return result;
  }

  async runUserCommand(
    script: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<number | null> {
    this.#refuseDuringTurn("a command of the user runs between turns");
    using turn = this.#openTurn(signal);
    await this.#replaceLostSandbox();
    this.#beginSession();
    try {
      return await takeUserCommand(script, {
        ...turn,
        ...this.#parts,
        setting: this.#setting,
        sandboxReady: this.#sandbox.ready,
        allowsLoginShell: this.#options.toolOptions?.allowsLoginShell ?? true,
      });
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) this.#sandbox.isLost = true;
      throw error;
    } finally {
      await this.#parts.recorder.flushEgress();
    }
  }

  async undo({ signal, onCopied }: RestorePointOptions = {}): Promise<UndoneChanges | null> {
    this.#refuseDuringTurn("changes are undone between turns");
    using turn = this.#openTurn(signal);
    await this.#replaceLostSandbox();
    return await this.#parts.restorePoints.undo(await this.sandbox, { signal: turn.signal, onCopied });
  }

  async changeSetting({ setting, sandbox }: SettingChange): Promise<void> {
    this.#refuseDuringTurn("a setting changes between turns");
    this.#checkAuthority(setting);
    // The agents still have the old setting, which may allow more.
    await this.#agents?.closeAll({ isFinal: false });
    this.#setting = setting;
    this.#approvals.change(situationIn(setting, { canEscalate: this.#escalated !== null }));
    if (sandbox === undefined) return;
    this.#parts.recorder.addReceipt(await this.#sandbox.close());
    this.#sandbox = this.#openSandbox(sandbox);
  }

  changeModel({ model, truncation }: ModelChange): void {
    this.#refuseDuringTurn("the model changes between turns");
    const { transcript, recorder } = this.#parts;
    // Reasoning is encrypted by its provider, and another one refuses it.
    if (model.provider !== this.#options.model.provider)
      transcript.replaceItems(transcript.toInput().filter(({ type }) => type !== "reasoning"));
    Object.assign(this.#options, { model, truncation });
    this.#parts = partsForModel(this.#parts, this.#options);
    recorder.changeModel(model);
    const { tools, toolOptions = {} } = this.#options;
    if (tools !== undefined) return;
    this.tools.adapt({ ...toolsForModel(model, toolOptions), truncation: this.#parts.truncation });
  }

  addMessages(messages: readonly AddedMessage[], { usage }: { usage?: TokenUsage | undefined } = {}): void {
    this.#refuseDuringTurn("messages are added between turns");
    this.#beginSession();
    const { transcript } = this.#parts;
    for (const { role, text } of messages)
      transcript.recordItem({
        ...{ type: "message", role },
        content: [{ type: role === "user" ? "input_text" : "output_text", text }],
      });
    if (usage !== undefined) transcript.spend(usage);
  }

  async releaseSandbox(): Promise<void> {
    this.#refuseDuringTurn("a sandbox is released between turns");
    if (typeof this.#sandbox.source !== "function") return;
    this.#sandbox.isLost = true;
    await this.#closeSandboxes();
  }

  async interruptAgents(): Promise<void> {
    await this.#agents?.interrupt();
  }

  async close(): Promise<void> {
    this.#parts.setup.stop();
    try {
      await this.#agents?.closeAll({ isFinal: true });
      await this.tools.close();
      // Somebody who interrupts a session does not want to wait.
      if (!this.#wasInterrupted) await this.#parts.recorder.tree(this.#sandbox, this.#setting);
      await this.#closeSandboxes();
      await this.#parts.recorder.flushEgress();
      this.#parts.recorder.receipt();
    } finally {
      this.#parts.telemetry?.end();
      await (this.#options.onClose?.() ?? Promise.resolve()).finally(() => this.#options.session?.close());
    }
  }

  #refuseDuringTurn(message: string): void {
    if (this.#turn !== null) throw new TypeError(message);
  }

  #authorityIn(setting: SessionSetting): SessionAuthority {
    return authorityOf(setting, this.tools, this.#options);
  }

  #checkAuthority(setting: SessionSetting): void {
    const { parent } = this.#options;
    if (parent !== undefined) checkAgainstParent(parent, this.#authorityIn(setting));
  }

  #openSandbox(source: SandboxSource): SessionSandbox {
    return new SessionSandbox(this.#parts.setup.before(source), {
      openServers: (sandbox) => {
        const onReceipt = (receipt: unknown) => this.#parts.recorder.addReceipt(receipt);
        return openServers(this.#options.mcpServers, { sandbox, setting: this.#setting, onReceipt });
      },
      openTools: (ready, servers) => this.#openTools(ready, servers),
      onStart: (start) => {
        const { sandbox } = start;
        if (sandbox.maskSecrets) this.#parts.transcript.maskWith(sandbox.maskSecrets);
        const situation = { setting: () => this.#setting, signal: () => this.#turn?.signal ?? null };
        const ask = lazyHostQuestions(this.#options, situation);
        const { network } = this.#setting;
        const isChanged = network !== this.#options.setting.network;
        this.#parts.recorder.watch(sandbox, { ask, changedNetwork: isChanged ? network : null });
        this.#parts.recorder.started(start, this.#setting.network);
      },
      // Losing the sandbox ends the turn, even while the model is still answering.
      onFailure: (error) => this.#turn?.stop.abort(error),
    });
  }

  #openAgents(place: AgentPlace | null): LazyAgents | null {
    return conversationAgents(this.#options, place, {
      threadId: this.threadId,
      instructions: this.#parts.instructions,
      truncation: this.#parts.truncation,
      inheritance: () => ({
        setting: this.#setting,
        authority: this.authority,
        servers: this.#sandbox.servers?.servers ?? null,
      }),
      escalated: this.#escalated?.get ?? null,
      sandbox: () => this.sandbox,
      history: () => this.#parts.transcript.settledItems(),
      emit: (event) => this.#parts.transcript.emit(event),
      stop: (error) => this.#turn?.stop.abort(error),
      open: (options, its) => guardedStart(options, (guarded) => new AgentConversation(guarded, its)),
    });
  }

  #openTools(ready: Promise<AgentSandbox>, servers: SessionServers | null): ToolRegistry {
    const { tools, toolOptions, model } = this.#options;
    if (tools !== undefined) return tools(ready);
    return openSessionTools(ready, {
      ...toolOptions,
      model,
      setting: this.#setting,
      threadId: this.threadId,
      truncation: this.#parts.truncation,
      review: this.#approvals,
      mcp: servers?.servers,
      agents: this.#agents ?? undefined,
      foundTools: this.#parts.transcript.foundTools,
      escalatedSandbox: this.#escalated?.get,
    });
  }

  async #closeSandboxes(): Promise<void> {
    await this.#agents?.closeAll({ isFinal: false });
    this.#parts.recorder.closed(await Promise.allSettled([this.#sandbox.close(), this.#escalated?.close()]));
  }

  /** Only a sandbox that a function opened can be opened again. */
  async #replaceLostSandbox(): Promise<void> {
    const { isLost, source } = this.#sandbox;
    if (!isLost || !this.#parts.recorder.hasBegun || typeof source !== "function") return;
    await this.#closeSandboxes();
    this.#sandbox = this.#openSandbox(source);
  }

  #openTurn(outside: AbortSignal | undefined): Turn {
    this.#turn = openTurn(createThreadId(this.#parts.now()), {
      outside,
      timeoutMs: this.#options.turnTimeoutMs,
      onDispose: () => {
        this.#turn = null;
      },
    });
    this.#parts.setup.stopWith(this.#turn.signal);
    return this.#turn;
  }

  #beginSession(): void {
    const { recorder, instructions } = this.#parts;
    recorder.begin(this.#sandbox, { setting: this.#setting, instructions });
  }

  async #takeTurn(input: TurnInput, turn: Turn): Promise<TurnEnding> {
    this.#parts.transcript.beginTurn();
    this.#beginSession();
    try {
      await takeTurn(input, {
        ...turn,
        ...this.#parts,
        tools: this.tools,
        sandboxReady: this.#sandbox.ready,
        servers: this.#sandbox.servers,
        takeNotices: () => this.#agents?.takeNotices() ?? [],
        setting: this.#setting,
        outputSchema: this.#options.outputSchema,
      });
      await this.#parts.recorder.requireNoCanarySent();
      return { status: "completed" };
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) this.#sandbox.isLost = true;
      return endingOf(error, input);
    } finally {
      await this.#parts.restorePoints.settled;
    }
  }
}
