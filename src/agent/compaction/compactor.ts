import { isBrigError } from "../../errors.js";
import { type MessageItem, type ResponseItem, wireItem } from "../../model/items.js";
import type { ModelClient, TokenUsage } from "../../model/model-client.js";
import { profileOf } from "../../model/model-profile.js";
import { compactedItems, handoffMessage, KEPT_USER_TOKENS } from "../../session/compacted-items.js";
import type { SessionRecord } from "../../session/write/session-file.js";
import type { AgentEvent, CompactionReason } from "../turn/events.js";
import { defaultCompactPrompt } from "./compaction.js";
import { requestSummary } from "./compaction-request.js";

/** When and how a conversation is summarized. */
export interface CompactionOptions {
  /** How many tokens the model can read at once. Default: what is known of it by its name. */
  contextWindowTokens?: number | undefined;
  /** So many tokens are the most that is kept. Default: nine tenths of the context window. */
  autoCompactTokens?: number | undefined;
  /** What the model is asked for. Default: brig's own words. */
  prompt?: string | undefined;
}

/** What compacting needs of a transcript. */
interface CompactedTranscript {
  /** How many tokens the conversation is, partly by estimate. */
  readonly tokens: number;
  toInput(): ResponseItem[];
  replaceItems(items: readonly ResponseItem[]): void;
  addUsage(usage: TokenUsage): void;
  keep(record: SessionRecord): void;
  emit(event: AgentEvent): void;
}

interface CompactorOptions extends CompactionOptions {
  model: ModelClient;
  instructions: string;
  transcript: CompactedTranscript;
  /** From 0 up to but not including 1. */
  random: () => number;
}

interface CompactionPass {
  reason: CompactionReason;
  signal: AbortSignal;
  /** What the model has to be told again at once. Default: nothing; the next turn tells it. */
  context?: (() => Promise<readonly MessageItem[]>) | undefined;
}

/** How a compaction ended that did not fail. */
export type CompactionOutcome =
  | { kind: "compacted"; tokensBefore: number; tokensAfter: number }
  /** There is nothing that a summary could stand for. */
  | { kind: "nothing" };

const USED_SHARE = 0.9;
/** A window smaller than usual is not to be filled by what the user said. */
const KEPT_SHARE = 0.25;
/** After a compaction the conversation has to grow by this much of the limit before it is worth another. */
const GROWTH_SHARE = 0.1;

/** Keeps a conversation within what its model can read. */
export class Compactor {
  readonly windowTokens: number | null;
  readonly #options: CompactorOptions;
  readonly #limitTokens: number;
  /** What a compaction led to, once the endpoint has counted it: less cannot be had. Null until then. */
  #floorTokens: number | null = 0;

  constructor(options: CompactorOptions) {
    this.#options = options;
    this.windowTokens = options.contextWindowTokens ?? profileOf(options.model.model).contextWindowTokens;
    const { autoCompactTokens = Number.POSITIVE_INFINITY } = options;
    this.#limitTokens = Math.min(
      autoCompactTokens,
      (this.windowTokens ?? Number.POSITIVE_INFINITY) * USED_SHARE,
    );
  }

  /**
   * Compacts where the conversation, with what is to come, is at its limit; for the time before a turn and between two requests. What
   * goes wrong is a warning: the endpoint has the last word on what is too long.
   */
  async compactIfFull(
    pass: Omit<CompactionPass, "reason">,
    { comingTokens = 0 }: { comingTokens?: number } = {},
  ): Promise<CompactionOutcome> {
    const { transcript } = this.#options;
    if (!this.#isFull(transcript.tokens + comingTokens)) return { kind: "nothing" };
    try {
      return await this.compact({ ...pass, reason: "limit" });
    } catch (error) {
      if (pass.signal.aborted || !isBrigError(error)) throw error;
      this.#floorTokens = transcript.tokens;
      transcript.emit({
        kind: "warning",
        message: `the conversation could not be compacted and goes on as it is: ${error.message}`,
      });
      return { kind: "nothing" };
    }
  }

  /** Puts a summary in the place of all but what the user said. Whatever goes wrong is thrown, and nothing has changed. */
  async compact({ reason, signal, context }: CompactionPass): Promise<CompactionOutcome> {
    const { transcript, prompt = defaultCompactPrompt } = this.#options;
    const items = transcript.toInput();
    if (!items.some(isWork)) return { kind: "nothing" };
    const tokensBefore = transcript.tokens;
    transcript.emit({ kind: "compaction-started", reason });
    const summary = await requestSummary({
      ...this.#options,
      prompt,
      items,
      signal,
      onUsage: (usage) => {
        transcript.addUsage(usage);
      },
      onReconnecting: (event) => {
        transcript.emit(event);
      },
    });
    const told = (await context?.()) ?? [];
    const kept = compactedItems(items, summary, { context: told, keptTokens: this.#keptTokens });
    transcript.replaceItems(kept);
    transcript.keep(compactedRecord(summary, kept));
    transcript.keep({ type: "event_msg", payload: { type: "context_compacted" } });
    this.#floorTokens = null;
    const tokensAfter = transcript.tokens;
    transcript.emit({ kind: "compacted", reason, tokensBefore, tokensAfter });
    transcript.emit({
      kind: "warning",
      message:
        "the conversation was summed up to make room: details of what came before may be lost. " +
        "A new session for a new task keeps the model exact.",
    });
    return { kind: "compacted", tokensBefore, tokensAfter };
  }

  get #keptTokens(): number {
    return Math.min(
      KEPT_USER_TOKENS,
      Math.floor((this.windowTokens ?? Number.POSITIVE_INFINITY) * KEPT_SHARE),
    );
  }

  #isFull(tokens: number): boolean {
    if (this.#floorTokens === null) {
      this.#floorTokens = tokens;
      return false;
    }
    const hasGrown = tokens >= this.#floorTokens + this.#limitTokens * GROWTH_SHARE;
    return tokens >= this.#limitTokens && hasGrown;
  }
}

/** `replacement_history` takes the place of every item before it. */
function compactedRecord(summary: string, items: readonly ResponseItem[]): SessionRecord {
  const [part] = handoffMessage(summary).content;
  const message = part?.type === "input_text" ? part.text : summary;
  return { type: "compacted", payload: { message, replacement_history: items.map(wireItem) } };
}

/** What a model did or said. */
function isWork(item: ResponseItem): boolean {
  return item.type !== "message" || item.role === "assistant";
}
