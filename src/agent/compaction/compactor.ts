import { isBrigError } from "../../errors.js";
import { type MessageItem, type ResponseItem, wireItem } from "../model/items.js";
import type { ModelClient } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import { compactedItems, handoffMessage, KEPT_USER_TOKENS } from "../session/compacted-items.js";
import type { SessionRecord } from "../session/write/session-file.js";
import type { CompactionReason } from "../turn/events.js";
import type { Transcript } from "../turn/transcript.js";
import { requestSummary } from "./compaction-request.js";

export const defaultCompactPrompt = `The room for this conversation is nearly used up. Everything but the user's own messages will be replaced by your next message, so write the note from which the work can go on without anything else. Call no tools.

Say, in this order and as briefly as exactness allows:
- what the user wants, with every condition and preference that was named;
- what was decided, and why;
- what is done: files changed or made (with paths), commands that matter and how they ended, sessions that still run (with their ids);
- what was found out that would be costly to find again: names, places in files, error texts word for word;
- what remains to be done, the next step first.`;

/** Settings for summarising a conversation. */
export interface CompactionOptions {
  /** Size of the model's context window. Default: the known size for the model's name. */
  contextWindowTokens?: number | undefined;
  /**
   * The size at which the conversation is compacted. Default and maximum: nine tenths of the context window.
   */
  autoCompactTokens?: number | undefined;
  /** Prompt that asks the model for the summary. Default: brig's own prompt. */
  prompt?: string | undefined;
}

interface CompactorOptions extends CompactionOptions {
  model: ModelClient;
  instructions: string;
  transcript: Transcript;
  /** Returns a number from 0 up to but not including 1. */
  random: () => number;
}

interface CompactionPass {
  reason: CompactionReason;
  signal: AbortSignal;
  /** Returns context messages to keep with the summary. Default: none; the next turn sends them. */
  context?: (() => Promise<readonly MessageItem[]>) | undefined;
}

/** The result of a compaction that did not fail. */
export type CompactionOutcome =
  | { kind: "compacted"; tokensBefore: number; tokensAfter: number }
  /** There was nothing to summarise, or no need to. */
  | { kind: "nothing" };

const USED_SHARE = 0.9;
/** In a small context window the user's messages take at most this share. */
const KEPT_SHARE = 0.25;
/** After a compaction the conversation has to grow by this much of the limit before it is worth another. */
const GROWTH_SHARE = 0.1;

/** Keeps a conversation within what its model can read. */
export class Compactor {
  readonly windowTokens: number | null;
  readonly #options: CompactorOptions;
  readonly #limitTokens: number;
  readonly #keptTokens: number;
  /**
   * The size after the last compaction, or failed attempt, as last measured. Null until it is measured again.
   */
  #floorTokens: number | null = 0;

  constructor(options: CompactorOptions) {
    this.#options = options;
    this.windowTokens = options.contextWindowTokens ?? profileOf(options.model.model).contextWindowTokens;
    const window = this.windowTokens ?? Number.POSITIVE_INFINITY;
    this.#limitTokens = Math.min(options.autoCompactTokens ?? window, window * USED_SHARE);
    this.#keptTokens = Math.min(KEPT_USER_TOKENS, Math.floor(window * KEPT_SHARE));
  }

  /** Whether the conversation takes up the model's context window, as far as that is known. */
  get isWindowFull(): boolean {
    return this.windowTokens !== null && this.#options.transcript.tokens >= this.windowTokens * USED_SHARE;
  }

  /**
   * Compacts if the conversation, with what is to be added, has reached its limit. A failure is only a
   * warning, because the endpoint decides what is too long.
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

  /**
   * Replaces everything but the user's messages with a summary. After an error the conversation is unchanged.
   */
  async compact({ reason, signal, context }: CompactionPass): Promise<CompactionOutcome> {
    const { transcript, prompt = defaultCompactPrompt } = this.#options;
    const items = transcript.toInput();
    if (!items.some(isFromModel)) return { kind: "nothing" };
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
    const messages = (await context?.()) ?? [];
    const kept = compactedItems(items, summary, { context: messages, keptTokens: this.#keptTokens });
    transcript.replaceItems(kept);
    transcript.keep(compactedRecord(summary, kept));
    transcript.keep({ type: "event_msg", payload: { type: "context_compacted" } });
    this.#floorTokens = null;
    const tokensAfter = transcript.tokens;
    transcript.emit({ kind: "compacted", reason, tokensBefore, tokensAfter });
    transcript.emit({
      kind: "warning",
      message:
        "the conversation was summed up to make room, and details may be lost. " +
        "Start a new session for a new task.",
    });
    return { kind: "compacted", tokensBefore, tokensAfter };
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

function compactedRecord(summary: string, items: readonly ResponseItem[]): SessionRecord {
  const [part] = handoffMessage(summary).content;
  const message = part?.type === "input_text" ? part.text : summary;
  return { type: "compacted", payload: { message, replacement_history: items.map(wireItem) } };
}

function isFromModel(item: ResponseItem): boolean {
  return item.type !== "message" || item.role === "assistant";
}
