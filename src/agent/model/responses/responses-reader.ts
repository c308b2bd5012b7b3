import { z } from "zod";
import { broken, type RefusalReader, type ResponseReader } from "../endpoint/endpoint-client.js";
import { incompleteResponse } from "../endpoint/model-failure.js";
import { readStreamError } from "../endpoint/refusal.js";
import { ResponseLimits } from "../endpoint/response-limits.js";
import { type BrokenStream, parseEvent, type StreamEvent } from "../endpoint/stream-event.js";
import type { ModelEvent, TokenUsage } from "../model-client.js";
import { ResponseItems } from "./response-items.js";

const usageShape = z.object({
  input_tokens: z.number(),
  input_tokens_details: z
    .object({ cached_tokens: z.number().nullish(), cache_write_tokens: z.number().nullish() })
    .nullish(),
  output_tokens: z.number(),
  output_tokens_details: z.object({ reasoning_tokens: z.number().nullish() }).nullish(),
});

const textDelta = z.object({ delta: z.string() });
const nextPart = z.object({ summary_index: z.number().min(1) });
/** The response in an event that ends it. Some endpoints leave out its items. */
const endedResponse = z.object({
  status: z.string().nullish().catch(null),
  model: z.string().optional().catch(undefined),
  usage: usageShape.nullish().catch(null),
  output: z.array(z.unknown()).catch([]),
  error: z.unknown().optional(),
  incomplete_details: z.object({ reason: z.string() }).nullish().catch(null),
});
type EndedResponse = z.output<typeof endedResponse>;

/** Reads a Responses API stream. Only finished items are kept; deltas are for display. */
export class ResponsesReader implements ResponseReader {
  readonly #refused: RefusalReader;
  readonly #limits = new ResponseLimits();
  readonly #items: ResponseItems;

  constructor({ keepsIds, refused }: { keepsIds: boolean; refused: RefusalReader }) {
    this.#refused = refused;
    this.#items = new ResponseItems({ keepsIds, limits: this.#limits });
  }

  *read(data: string): Iterable<ModelEvent> {
    const event = parseEvent(data);
    if (event === null) return;
    switch (event.type) {
      case "response.output_text.delta":
        yield* this.#text(textDelta.safeParse(event).data?.delta);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        yield* this.#thought(textDelta.safeParse(event).data?.delta);
        break;
      case "response.reasoning_summary_part.added":
        yield* this.#thought(nextPart.safeParse(event).success ? "\n\n" : undefined);
        break;
      case "response.output_item.added":
        this.#items.announce(event);
        break;
      case "response.output_item.done":
        this.#limits.addChars(data.length);
        for (const item of this.#items.add(event.item)) yield { kind: "item", item };
        break;
      default:
        yield* this.#readEnd(event);
    }
  }

  *end(cut: BrokenStream | null): Iterable<ModelEvent> {
    yield broken(cut?.message ?? "stream closed before response.completed", cut ?? undefined);
  }

  *#readEnd(event: StreamEvent): Iterable<ModelEvent> {
    const response = endedResponse.safeParse(event.response ?? {}).data ?? { output: [] };
    switch (event.type) {
      case "response.completed":
      // Some gateways call it that, with a status that says how it ended.
      case "response.done":
        yield* this.#ended(response);
        break;
      case "response.failed":
        yield this.#refused(readStreamError(response.error));
        break;
      case "response.incomplete":
        yield* this.#incomplete(response);
        break;
      case "error":
        yield this.#refused(readStreamError(event.error ?? event));
        break;
      default:
        // An error that is no event of the API comes from a gateway before it.
        if (event.type === undefined && hasValue(event.error))
          yield this.#refused(readStreamError(event.error));
    }
  }

  *#ended(response: EndedResponse): Iterable<ModelEvent> {
    if (response.status === "failed") yield this.#refused(readStreamError(response.error));
    else if (response.status === "incomplete") yield* this.#incomplete(response);
    else {
      for (const item of this.#items.atEnd(response.output)) yield { kind: "item", item };
      yield { kind: "completed", usage: readUsage(response.usage), model: response.model };
    }
  }

  *#incomplete({ output, usage, incomplete_details }: EndedResponse): Iterable<ModelEvent> {
    for (const item of this.#items.atCut(output)) yield { kind: "item", item };
    throw incompleteResponse(incomplete_details?.reason ?? "unknown", readUsage(usage));
  }

  *#text(text: string | undefined): Iterable<ModelEvent> {
    if (text === undefined) return;
    this.#limits.addChars(text.length);
    this.#items.addText(text);
    yield { kind: "text-delta", text };
  }

  *#thought(text: string | undefined): Iterable<ModelEvent> {
    if (text === undefined) return;
    this.#limits.addChars(text.length);
    yield { kind: "reasoning-delta", text };
  }
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function cacheWrites(tokens: number | null | undefined): Pick<TokenUsage, "cacheWriteInputTokens"> {
  return tokens === null || tokens === undefined || tokens === 0 ? {} : { cacheWriteInputTokens: tokens };
}

function readUsage(usage: z.output<typeof usageShape> | null | undefined): TokenUsage | null {
  if (usage === null || usage === undefined) return null;
  return {
    inputTokens: usage.input_tokens,
    cachedInputTokens: usage.input_tokens_details?.cached_tokens ?? 0,
    ...cacheWrites(usage.input_tokens_details?.cache_write_tokens),
    outputTokens: usage.output_tokens,
    reasoningOutputTokens: usage.output_tokens_details?.reasoning_tokens ?? 0,
  };
}
