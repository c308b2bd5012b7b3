import { mapTexts } from "../../lib/json/map-texts.js";
import type { TruncationPolicy } from "../../sandbox/index.js";
import type { CallOutcome } from "../../tools/index.js";
import { isToolOutput, messageText, type ResponseItem, type ToolCallItem } from "../model/items.js";
import { noUsage, type TokenUsage, usageTogether } from "../model/model-client.js";
import type { SessionLog, SessionRecord } from "../session/write/session-file.js";
import { eventOfItem, responseItem, tokenCountEvent } from "../session/write/session-records.js";
import type { AgentEvent, AgentListener } from "./events.js";
import { foundTools } from "./found-tools.js";
import { History, outputItem } from "./history.js";
import { webSearchIn } from "./web-search-event.js";

/** Passes what happens in a session on to the next request, the session file and the listener. */
export class Transcript {
  usage: TokenUsage;
  lastMessage: string | null = null;
  toolCalls = 0;
  callLatenciesMs: number[] = [];
  readonly #history: History;
  readonly #log: SessionLog;
  readonly #onEvent: AgentListener;
  readonly #masks: ((text: string) => string)[] = [];

  /** The tools of MCP servers that the model has found by a search; the search adds to them. */
  readonly foundTools: Set<string>;

  constructor(options: {
    log: SessionLog;
    onEvent: AgentListener | undefined;
    truncation: TruncationPolicy;
    /** Size of the parts of every request that are not items. */
    fixedTokens: number;
    /** The conversation so far; `log` already contains it. Default: none. */
    initialItems?: readonly ResponseItem[] | undefined;
    /** The total of all earlier requests. Default: none. */
    usage?: TokenUsage | undefined;
  }) {
    this.usage = options.usage ?? noUsage;
    this.#history = new History(options.truncation, options);
    for (const item of options.initialItems ?? []) this.#history.record(item);
    this.foundTools = foundTools(options.initialItems ?? []);
    this.#log = options.log;
    this.#onEvent = options.onEvent ?? (() => undefined);
  }

  get sessionFile(): string | null {
    return this.#log.path;
  }

  /** Resets what is counted for each turn: the last message, the calls and their latencies. */
  beginTurn(): void {
    this.lastMessage = null;
    this.toolCalls = 0;
    this.callLatenciesMs = [];
  }

  /** The size of the conversation, partly estimated. */
  get tokens(): number {
    return this.#history.tokens;
  }

  settledItems(): ResponseItem[] {
    return this.#history.settledItems();
  }

  toInput(): ResponseItem[] {
    return this.#history.toInput();
  }

  /**
   * Hides secrets in records, events and outputs from now on. A session may have several sandboxes, and what a call
   * in one of them gives may contain a secret of another.
   */
  maskWith(mask: (text: string) => string): void {
    this.#masks.push(mask);
  }

  emit(event: AgentEvent): void {
    this.#onEvent(this.#masked(event));
  }

  /** Warns when records can no longer be written. */
  keep(record: SessionRecord): void {
    this.#write(this.#masked(record));
  }

  #write(record: SessionRecord): void {
    const wasComplete = this.#log.trouble === null;
    this.#log.append(record);
    const { trouble } = this.#log;
    if (wasComplete && trouble !== null) this.emit({ kind: "warning", message: trouble });
  }

  recordItem(item: ResponseItem): void {
    if (isToolOutput(item)) {
      // The model does not get the secrets either.
      this.#write(responseItem(this.#history.record(this.#masked(item))));
      return;
    }
    this.keep(responseItem(this.#history.record(item)));
    const event = eventOfItem(item);
    if (event !== null) this.keep(event);
    switch (item.type) {
      case "reasoning":
        this.emit({ kind: "reasoning", text: item.summary.map(({ text }) => text).join("\n") });
        return;
      case "message":
        if (item.role === "assistant") this.#takeMessage(messageText(item));
        return;
      case "opaque": {
        const search = webSearchIn(item);
        if (search !== null) this.emit({ kind: "web-searched", ...search });
        return;
      }
      default:
        this.toolCalls++;
    }
  }

  #takeMessage(text: string): void {
    this.lastMessage = text;
    this.emit({ kind: "message", text });
  }

  cutOutputsBy(policy: TruncationPolicy): void {
    this.#history.cutOutputsBy(policy);
  }

  /** Replaces the conversation; the session file keeps what it already contains. */
  replaceItems(items: readonly ResponseItem[]): void {
    this.#history.replace(items);
  }

  /** `outcome`: null for a call that ended with the whole turn. */
  recordOutput(call: ToolCallItem, outcome: CallOutcome | null): void {
    this.recordItem(
      outputItem(call, outcome === null ? "aborted" : (outcome.parts?.slice() ?? outcome.content)),
    );
    if (outcome !== null) this.callLatenciesMs.push(outcome.durationMs);
  }

  /** All items of the response must be recorded. */
  addUsage(usage: TokenUsage): void {
    this.#history.count(usage);
    this.spend(usage);
  }

  /** Counts what was used for something else than this conversation's own requests. */
  spend(usage: TokenUsage): void {
    this.usage = usageTogether(this.usage, usage);
    this.keep(tokenCountEvent(this.usage, usage));
  }

  #masked<Value>(value: Value): Value {
    return this.#masks.reduce<Value>((masked, mask) => mapTexts(masked, mask), value);
  }
}
