import { isToolCall, messageText, type ResponseItem, type ToolCallItem } from "../../model/items.js";
import { noUsage, type TokenUsage } from "../../model/model-client.js";
import type { TruncationPolicy } from "../../output/truncation.js";
import type { SessionLog, SessionRecord } from "../../session/write/session-file.js";
import { eventOfItem, responseItem, tokenCountEvent } from "../../session/write/session-records.js";
import type { CallOutcome } from "../../tools/call-scheduler.js";
import type { AgentEvent, AgentListener } from "./events.js";
import { History, outputItem } from "./history.js";
import { webSearchIn } from "./web-search-event.js";

/** What a session has said and done so far: for the next request, for the session file, and for who listens. */
export class Transcript {
  usage: TokenUsage;
  lastMessage: string | null = null;
  toolCalls = 0;
  callLatenciesMs: number[] = [];
  readonly #history: History;
  readonly #log: SessionLog;
  readonly #onEvent: AgentListener;

  constructor(options: {
    log: SessionLog;
    onEvent: AgentListener | undefined;
    truncation: TruncationPolicy;
    /** What every request has besides the items. */
    fixedTokens: number;
    /** What was said before; it is in the log already. Default: nothing. */
    initialItems?: readonly ResponseItem[] | undefined;
    /** Of all requests before. Default: none. */
    usage?: TokenUsage | undefined;
  }) {
    this.usage = options.usage ?? noUsage;
    this.#history = new History(options.truncation, options);
    for (const item of options.initialItems ?? []) this.#history.record(item);
    this.#log = options.log;
    this.#onEvent = options.onEvent ?? (() => undefined);
  }

  get sessionFile(): string | null {
    return this.#log.path;
  }

  /** From here on the last message, the calls and their latencies are those of a new turn. */
  beginTurn(): void {
    this.lastMessage = null;
    this.toolCalls = 0;
    this.callLatenciesMs = [];
  }

  /** How many tokens the conversation is: as the endpoint counted last, and by estimate since then. */
  get tokens(): number {
    return this.#history.tokens;
  }

  toInput(): ResponseItem[] {
    return this.#history.toInput();
  }

  emit(event: AgentEvent): void {
    this.#onEvent(event);
  }

  /** A record that could not be written is told of once. */
  keep(record: SessionRecord): void {
    const wasComplete = this.#log.trouble === null;
    this.#log.append(record);
    const { trouble } = this.#log;
    if (wasComplete && trouble !== null) this.emit({ kind: "warning", message: trouble });
  }

  /** Adds an item at once, before anything is done about it. */
  recordItem(item: ResponseItem): void {
    this.keep(responseItem(this.#history.record(item)));
    const event = eventOfItem(item);
    if (event !== null) this.keep(event);
    if (isToolCall(item)) this.toolCalls++;
    if (item.type === "reasoning")
      this.emit({ kind: "reasoning", text: item.summary.map(({ text }) => text).join("\n") });
    const search = webSearchIn(item);
    if (search !== null) this.emit({ kind: "web-searched", ...search });
    if (item.type !== "message" || item.role !== "assistant") return;
    this.lastMessage = messageText(item);
    this.emit({ kind: "message", text: this.lastMessage });
  }

  /** Others take the place of all items; what was recorded stays in the log. */
  replaceItems(items: readonly ResponseItem[]): void {
    this.#history.replace(items);
  }

  /** Null stands for a call that was cut short together with everything else. */
  recordOutput(call: ToolCallItem, outcome: CallOutcome | null): void {
    this.recordItem(
      outputItem(call, outcome === null ? "aborted" : (outcome.parts?.slice() ?? outcome.content)),
    );
    if (outcome !== null) this.callLatenciesMs.push(outcome.durationMs);
  }

  /** Of a request whose response's items are all recorded. */
  addUsage(usage: TokenUsage): void {
    this.#history.count(usage);
    const cacheWrites = (this.usage.cacheWriteInputTokens ?? 0) + (usage.cacheWriteInputTokens ?? 0);
    this.usage = {
      inputTokens: this.usage.inputTokens + usage.inputTokens,
      cachedInputTokens: this.usage.cachedInputTokens + usage.cachedInputTokens,
      ...(cacheWrites === 0 ? {} : { cacheWriteInputTokens: cacheWrites }),
      outputTokens: this.usage.outputTokens + usage.outputTokens,
      reasoningOutputTokens: this.usage.reasoningOutputTokens + usage.reasoningOutputTokens,
    };
    this.keep(tokenCountEvent(this.usage, usage));
  }
}
