import { BrigError, isBrigError } from "../errors.js";
import { pause } from "../lib/pause.js";
import { retryDelayMs } from "../model/backoff.js";
import { messageText, type ResponseItem, textMessage } from "../model/items.js";
import type { ModelClient, TokenUsage } from "../model/model-client.js";
import { withoutOldest } from "./compaction.js";
import type { AgentEvent } from "./events.js";

export interface SummaryRequest {
  model: ModelClient;
  instructions: string;
  /** The whole conversation. */
  items: readonly ResponseItem[];
  /** What the model is asked for. */
  prompt: string;
  signal: AbortSignal;
  /** From 0 up to but not including 1. */
  random: () => number;
  onUsage(usage: TokenUsage): void;
  onReconnecting(event: AgentEvent & { kind: "reconnecting" }): void;
}

/**
 * Has the model sum up the conversation. Where that is more than it can read the oldest item is left out and it is asked again, then
 * two more, then four. Failures are the model's own `model.*` errors; an answer without text is `model.failed`.
 */
export async function requestSummary(request: SummaryRequest): Promise<string> {
  let { items } = request;
  for (let dropped = 1; ; dropped *= 2) {
    try {
      return await askPatiently(request, items);
    } catch (error) {
      if (!isContextOverflow(error) || items.length === 0) throw error;
      items = withoutOldest(items, dropped);
    }
  }
}

/** The endpoint says that the conversation is longer than the model can read. */
export function isContextOverflow(error: unknown): error is BrigError {
  return isBrigError(error, "model.context-window");
}

/** A response that broke off is asked for again, from its start. */
async function askPatiently(request: SummaryRequest, items: readonly ResponseItem[]): Promise<string> {
  const { model, signal, random, onReconnecting } = request;
  const maxAttempts = model.maxStreamRetries;
  for (let attempt = 1; ; attempt++) {
    const answer = await ask(request, items);
    if (answer.kind === "summary") return answer.text;
    if (attempt > maxAttempts) throw answer.error;
    const delayMs = retryDelayMs(attempt, { retryAfterMs: answer.retryAfterMs, random });
    const reason = answer.error.message;
    onReconnecting({ kind: "reconnecting", attempt, maxAttempts, delayMs, reason });
    await pause(delayMs, signal);
  }
}

type Answer =
  | { kind: "summary"; text: string }
  | { kind: "broken"; error: BrigError; retryAfterMs: number | null };

async function ask(
  { model, instructions, prompt, signal, onUsage }: SummaryRequest,
  items: readonly ResponseItem[],
): Promise<Answer> {
  const input = [...items, textMessage("user", prompt)];
  let text = "";
  for await (const event of model.stream({ instructions, input, tools: [] }, signal)) {
    if (event.kind === "item" && event.item.type === "message" && event.item.role === "assistant")
      text = messageText(event.item);
    if (event.kind === "broken") return event;
    if (event.kind === "completed" && event.usage !== null) onUsage(event.usage);
  }
  signal.throwIfAborted();
  if (text.trim() !== "") return { kind: "summary", text };
  throw new BrigError("the model was asked to sum up the conversation and answered without a word", {
    code: "model.failed",
    hint: "try again, or set compact_prompt",
  });
}
