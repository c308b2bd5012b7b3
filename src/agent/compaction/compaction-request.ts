import { BrigError, isBrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import { isIncomplete } from "../model/endpoint/model-failure.js";
import { messageText, type ResponseItem, textMessage } from "../model/items.js";
import type { BrokenResponse, ModelClient, TokenUsage } from "../model/model-client.js";
import type { AgentEvent } from "../turn/events.js";
import { normalised } from "../turn/history.js";
import { Reconnects } from "../turn/reconnects.js";

export interface SummaryRequest {
  model: ModelClient;
  instructions: string;
  items: readonly ResponseItem[];
  /** Asks the model for the summary. */
  prompt: string;
  signal: AbortSignal;
  /** Returns a number from 0 up to but not including 1. */
  random: () => number;
  onUsage(usage: TokenUsage): void;
  onReconnecting(event: AgentEvent & { kind: "reconnecting" }): void;
}

/**
 * Has the model summarise the conversation. While that is longer than the model can read, the oldest item is
 * left out, then two more, then four, and so on, and also while the summary itself is cut off. An answer
 * without text is `model.failed`.
 */
export async function requestSummary(request: SummaryRequest): Promise<string> {
  let { items } = request;
  for (let dropped = 1; ; dropped *= 2) {
    const answer = await askWithRetries(request, items);
    if (answer.kind === "summary") return answer.text;
    if (items.length === 0) throw answer.error;
    items = withoutOldest(items, dropped);
  }
}

/** Leaves out the oldest items, and the outputs of the calls among them. */
export function withoutOldest(items: readonly ResponseItem[], count: number): ResponseItem[] {
  return normalised(items.slice(count));
}

export function isContextOverflow(error: unknown): error is BrigError {
  return isBrigError(error, "model.context-window");
}

type Answer =
  | { kind: "summary"; text: string }
  /** There was no room, for the conversation or for the summary. */
  | { kind: "too-long"; error: BrigError };

async function askWithRetries(request: SummaryRequest, items: readonly ResponseItem[]): Promise<Answer> {
  const { model, signal, random, onReconnecting } = request;
  const reconnects = new Reconnects(model, { random });
  for (;;) {
    const answer = await ask(request, items);
    if (answer.kind !== "broken") return answer;
    const reconnecting = reconnects.next(answer);
    onReconnecting(reconnecting);
    await pause(reconnecting.delayMs, signal);
  }
}

async function ask(
  request: SummaryRequest,
  items: readonly ResponseItem[],
): Promise<Answer | BrokenResponse> {
  try {
    return await readSummary(request, items);
  } catch (error) {
    if (!isContextOverflow(error) && !isIncomplete(error)) throw error;
    return { kind: "too-long", error };
  }
}

async function readSummary(
  { model, instructions, prompt, signal, onUsage }: SummaryRequest,
  items: readonly ResponseItem[],
): Promise<Answer | BrokenResponse> {
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
  throw new BrigError("the model was asked to summarise the conversation and answered without any text", {
    code: "model.failed",
    hint: "try again, or set compact_prompt",
  });
}
