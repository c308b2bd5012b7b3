import { z } from "zod";
import { BrigError } from "../errors.js";
import { classifyRefusal } from "./failure.js";
import { parseItem, type ResponseItem } from "./items.js";
import type { ModelEvent, TokenUsage } from "./model-client.js";

const errorShape = z.object({
  code: z.string().nullish(),
  type: z.string().nullish(),
  message: z.string().nullish(),
});

const usageShape = z.object({
  input_tokens: z.number(),
  input_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish(),
  output_tokens: z.number(),
  output_tokens_details: z.object({ reasoning_tokens: z.number().nullish() }).nullish(),
});

const delta = z.object({ delta: z.string() });

/** The events brig acts on, with the fields it uses. */
const eventShapes = {
  "response.output_text.delta": delta.transform(({ delta: text }) => ({ kind: "text-delta" as const, text })),
  "response.reasoning_summary_text.delta": delta.transform(({ delta: text }) => ({
    kind: "reasoning-delta" as const,
    text,
  })),
  "response.output_item.done": z.object({ item: z.unknown() }).transform(({ item }) => ({
    kind: "item" as const,
    item: readItem(item),
  })),
  "response.completed": z
    .object({ response: z.object({ usage: usageShape.nullish() }) })
    .transform(({ response }) => ({ kind: "completed" as const, usage: readUsage(response.usage) })),
  "response.failed": z
    .object({ response: z.object({ error: errorShape.nullish() }) })
    .transform(({ response }) => refused(response.error)),
  "response.incomplete": z
    .object({ response: z.object({ incomplete_details: z.object({ reason: z.string() }).nullish() }) })
    .transform(({ response }) => incomplete(response.incomplete_details?.reason)),
  error: errorShape
    .extend({ error: errorShape.nullish() })
    .transform((event) => refused(event.error ?? event)),
};

const named = z.object({ type: z.string() });

/**
 * What an event of a response stream means; null for one that brig does not act on. A failure that no retry mends is
 * thrown.
 */
export function readResponseEvent(event: unknown): ModelEvent | null {
  const type = named.safeParse(event).data?.type ?? "";
  if (!isKnown(type)) return null;
  const shape: z.ZodType<ModelEvent> = eventShapes[type];
  const parsed = shape.safeParse(event);
  return parsed.success ? parsed.data : null;
}

function isKnown(type: string): type is keyof typeof eventShapes {
  return Object.hasOwn(eventShapes, type);
}

function readItem(value: unknown): ResponseItem {
  try {
    return parseItem(value);
  } catch (cause) {
    if (!(cause instanceof z.ZodError)) throw cause;
    throw new BrigError(`the endpoint sent an item that is not whole:\n${z.prettifyError(cause)}`, {
      code: "model.failed",
      cause,
    });
  }
}

function readUsage(usage: z.output<typeof usageShape> | null | undefined): TokenUsage | null {
  if (usage === null || usage === undefined) return null;
  return {
    inputTokens: usage.input_tokens,
    cachedInputTokens: usage.input_tokens_details?.cached_tokens ?? 0,
    outputTokens: usage.output_tokens,
    reasoningOutputTokens: usage.output_tokens_details?.reasoning_tokens ?? 0,
  };
}

function refused(error: z.output<typeof errorShape> | null | undefined): ModelEvent {
  const failure = classifyRefusal({
    message: error?.message ?? "the endpoint failed without saying why",
    code: error?.code ?? error?.type,
  });
  if (!failure.canRetry) throw failure.error;
  return { kind: "broken", error: failure.error, retryAfterMs: failure.retryAfterMs };
}

function incomplete(reason = "unknown"): ModelEvent {
  throw new BrigError(`Incomplete response returned, reason: ${reason}`, { code: "model.failed" });
}
