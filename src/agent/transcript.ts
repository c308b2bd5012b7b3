import { isToolCall, messageText, type ResponseItem, type ToolCallItem } from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";
import type { CallOutcome } from "../tools/call-scheduler.js";
import type { TruncationPolicy } from "../tools/truncation.js";
import type { AgentEvent, AgentListener } from "./events.js";
import { History, outputItem } from "./history.js";
import type { SessionLog, SessionRecord } from "./session-file.js";
import { eventOfItem, responseItem, tokenCountEvent } from "./session-records.js";

/** What a session has said and done so far: for the next request, for the session file, and for who listens. */
export class Transcript {
  usage: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0 };
  lastMessage: string | null = null;
  toolCalls = 0;
  readonly callLatenciesMs: number[] = [];
  readonly #history: History;
  readonly #log: SessionLog;
  readonly #onEvent: AgentListener;

  constructor(options: {
    log: SessionLog;
    onEvent: AgentListener | undefined;
    truncation: TruncationPolicy;
  }) {
    this.#history = new History(options.truncation);
    this.#log = options.log;
    this.#onEvent = options.onEvent ?? (() => undefined);
  }

  get sessionFile(): string | null {
    return this.#log.path;
  }

  toInput(): ResponseItem[] {
    return this.#history.toInput();
  }

  emit(event: AgentEvent): void {
    this.#onEvent(event);
  }

  keep(record: SessionRecord): void {
    this.#log.append(record);
  }

  /** Adds an item at once, before anything is done about it. */
  recordItem(item: ResponseItem): void {
    this.keep(responseItem(this.#history.record(item)));
    const event = eventOfItem(item);
    if (event !== null) this.keep(event);
    if (isToolCall(item)) this.toolCalls++;
    if (item.type === "reasoning")
      this.emit({ kind: "reasoning", text: item.summary.map(({ text }) => text).join("\n") });
    if (item.type !== "message" || item.role !== "assistant") return;
    this.lastMessage = messageText(item);
    this.emit({ kind: "message", text: this.lastMessage });
  }

  /** Null stands for a call that was cut short together with everything else. */
  recordOutput(call: ToolCallItem, outcome: CallOutcome | null): void {
    this.recordItem(
      outputItem(call, outcome === null ? "aborted" : (outcome.parts?.slice() ?? outcome.content)),
    );
    if (outcome !== null) this.callLatenciesMs.push(outcome.durationMs);
  }

  addUsage(usage: TokenUsage): void {
    this.usage = {
      inputTokens: this.usage.inputTokens + usage.inputTokens,
      cachedInputTokens: this.usage.cachedInputTokens + usage.cachedInputTokens,
      outputTokens: this.usage.outputTokens + usage.outputTokens,
      reasoningOutputTokens: this.usage.reasoningOutputTokens + usage.reasoningOutputTokens,
    };
    this.keep(tokenCountEvent(this.usage, usage));
  }
}
