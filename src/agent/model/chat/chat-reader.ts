import { z } from "zod";
import { parseJson } from "../../../lib/json/parse-json.js";
import { broken, type RefusalReader, type ResponseReader } from "../endpoint/endpoint-client.js";
import { incompleteResponse, unusableResponse } from "../endpoint/model-failure.js";
import { readStreamError } from "../endpoint/refusal.js";
import { ResponseLimits } from "../endpoint/response-limits.js";
import { type BrokenStream, DamagedStream, parseEvent } from "../endpoint/stream-event.js";
import { isToolCall, type ResponseItem, type ToolCallItem } from "../items.js";
import type { ModelEvent, ModelRequest, TokenUsage } from "../model-client.js";

// What the answer and its calls consist of is read strictly: a piece that is left out would change them.

/** How gateways in PHP write an empty object. */
const emptyObject = z.tuple([]).transform(() => null);
const textPart = z.object({ text: z.string().nullish() });
const texts = z
  .union([z.string(), z.array(textPart).transform((parts) => parts.map(({ text }) => text ?? "").join(""))])
  .nullish()
  .transform((text) => text ?? "");
const thought = z
  .union([
    z.string(),
    z.object({ text: z.string() }).transform(({ text }) => text),
    z.object({ content: z.string() }).transform(({ content }) => content),
  ])
  .catch("");

const callDelta = z.object({
  index: z.number().nullish().catch(null),
  id: z.string().nullish().catch(null),
  function: z
    .object({
      name: z.string().nullish(),
      arguments: z
        .union([z.string(), emptyObject, z.looseObject({}).transform((args) => JSON.stringify(args))])
        .nullish()
        .transform((args) => args ?? ""),
    })
    .nullish(),
});
type CallDelta = z.output<typeof callDelta>;

const delta = z.object({
  content: texts,
  refusal: texts,
  reasoning: thought,
  reasoning_content: thought,
  tool_calls: z
    .array(callDelta)
    .nullish()
    .transform((calls) => calls ?? []),
});

const choice = z.object({
  delta: z.union([delta, emptyObject]).nullish(),
  /** Sent instead of `delta` by endpoints that do not stream. */
  message: z.union([delta, emptyObject]).nullish(),
  finish_reason: z.string().nullish().catch(null),
});

const count = z.number().nullish().catch(null);
const usageShape = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  prompt_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
});

const chunk = z.object({
  error: z.unknown().optional(),
  model: z.string().optional().catch(undefined),
  choices: z
    .array(choice)
    .nullish()
    .transform((choices) => choices ?? []),
  usage: usageShape.nullish().catch(null),
});

/** Of an answer that the model did not end itself. */
const cutFinishes: ReadonlySet<string> = new Set(["length", "content_filter"]);

interface PendingCall {
  index: number | null;
  id: string;
  name: string;
  arguments: string;
}

export interface ChatReaderOptions {
  refused: RefusalReader;
  onReasoningField: (name: string) => void;
}

/** Reads a Chat Completions stream. Items come at the end: the deltas may be in any order. */
export class ChatReader implements ResponseReader {
  readonly #options: ChatReaderOptions;
  readonly #usedIds: Set<string>;
  #text = "";
  #thoughts = "";
  readonly #calls: PendingCall[] = [];
  #finishReason: string | null = null;
  #usage: TokenUsage | null = null;
  #model: string | undefined;
  readonly #limits = new ResponseLimits();

  constructor({ input }: ModelRequest, options: ChatReaderOptions) {
    this.#options = options;
    this.#usedIds = new Set(input.filter(isToolCall).map(({ call_id }) => call_id));
  }

  *read(data: string): Iterable<ModelEvent> {
    if (/^\s*\[?DONE\]?\s*$/.test(data)) {
      yield* this.#complete();
      return;
    }
    const event = parseEvent(data);
    if (event === null) return;
    const { data: said } = chunk.safeParse(event);
    if (said === undefined)
      throw new DamagedStream("the endpoint sent a part of its answer that cannot be read");
    if (said.error !== undefined && said.error !== null) {
      yield this.#options.refused(readStreamError(said.error));
      return;
    }
    this.#model ??= said.model;
    const usage = readUsage(said.usage);
    if (usage !== null) this.#usage = usage;
    const [answer] = said.choices;
    if (answer !== undefined) yield* this.#readChoice(answer);
    // Some endpoints send usage with every delta. The final one comes with the finish reason or after it.
    if (this.#finishReason !== null && usage !== null) yield* this.#complete();
  }

  /** Without a finish reason a stream is complete unless it ends within a call. */
  *end(cut: BrokenStream | null): Iterable<ModelEvent> {
    const isEmpty = this.#text === "" && this.#calls.length === 0;
    const isWhole = !isEmpty && this.#calls.every(({ arguments: args }) => parseJson(args) !== undefined);
    if (this.#finishReason !== null || (cut === null && isWhole)) yield* this.#complete();
    else yield broken(cut?.message ?? "stream closed before it was finished", cut ?? undefined);
  }

  *#readChoice({ delta, message, finish_reason }: z.output<typeof choice>): Iterable<ModelEvent> {
    const said = delta ?? message;
    if (said !== null && said !== undefined) yield* this.#readDelta(said);
    if (typeof finish_reason === "string" && finish_reason !== "") this.#finishReason = finish_reason;
  }

  *#readDelta(said: z.output<typeof delta>): Iterable<ModelEvent> {
    if (said.reasoning_content !== "") this.#options.onReasoningField("reasoning_content");
    else if (said.reasoning !== "") this.#options.onReasoningField("reasoning");
    // Some endpoints send the same reasoning under both names.
    const thoughts = said.reasoning_content === "" ? said.reasoning : said.reasoning_content;
    const text = said.content + said.refusal;
    this.#thoughts += thoughts;
    this.#text += text;
    this.#limits.addChars(thoughts.length + text.length);
    if (thoughts !== "") yield { kind: "reasoning-delta", text: thoughts };
    if (text !== "") yield { kind: "text-delta", text };
    for (const call of said.tool_calls) this.#readCall(call);
  }

  #readCall({ index = null, id, function: called }: CallDelta): void {
    const name = called?.name ?? "";
    const args = called?.arguments ?? "";
    let call = this.#findCall({ index, id: id ?? "", name });
    if (call === undefined) {
      this.#limits.addCall();
      call = { index, id: "", name: "", arguments: "" };
      this.#calls.push(call);
    }
    if (call.id === "") call.id = id ?? "";
    if (call.name === "") call.name = name;
    call.arguments += args;
    this.#limits.addChars(args.length + name.length + (id?.length ?? 0));
  }

  /**
   * The call that a delta continues. Some endpoints send the same index for all calls, some send none, and
   * some send a new id with every delta.
   */
  #findCall({ index, id, name }: Pick<PendingCall, "index" | "id" | "name">): PendingCall | undefined {
    if (index === null) {
      const last = this.#calls.at(-1);
      return id === "" || id === last?.id ? last : this.#calls.find((call) => call.id === id);
    }
    const call = this.#calls.findLast((each) => each.index === index);
    const isAnother = id !== "" && name !== "" && call?.name !== "" && call?.id !== "" && call?.id !== id;
    return isAnother ? undefined : call;
  }

  *#complete(): Iterable<ModelEvent> {
    for (const item of this.#said()) yield { kind: "item", item };
    const finish = this.#finishReason ?? "stop";
    // The last call may be cut off, and nothing says whether it is.
    if (cutFinishes.has(finish)) throw incompleteResponse(finish, this.#usage);
    for (const item of this.#called()) yield { kind: "item", item };
    yield { kind: "completed", usage: this.#usage, model: this.#model };
  }

  *#said(): Iterable<ResponseItem> {
    if (this.#thoughts !== "")
      yield { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: this.#thoughts }] };
    if (this.#text !== "")
      yield { type: "message", role: "assistant", content: [{ type: "output_text", text: this.#text }] };
  }

  *#called(): Iterable<ResponseItem> {
    for (const [position, call] of this.#calls.entries())
      if (call.name !== "" || call.arguments !== "") yield this.#callItem(call, position);
  }

  #callItem({ index, id, name, arguments: args }: PendingCall, position: number): ToolCallItem {
    if (name === "") throw unusableResponse("the endpoint sent a call without the name of a tool");
    const call_id = this.#unusedId(id === "" ? `tool-call-${index ?? position}` : id);
    return { type: "function_call", call_id, name, arguments: args.trim() === "" ? "{}" : args };
  }

  /** Outputs refer to calls by id, and some endpoints number their calls from the start in every response. */
  #unusedId(wanted: string): string {
    let id = wanted;
    for (let copy = 2; this.#usedIds.has(id); copy++) id = `${wanted}-${copy}`;
    this.#usedIds.add(id);
    return id;
  }
}

function readUsage(usage: z.output<typeof usageShape> | null | undefined): TokenUsage | null {
  if (usage === null || usage === undefined) return null;
  return {
    inputTokens: usage.prompt_tokens,
    cachedInputTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    outputTokens: usage.completion_tokens,
    reasoningOutputTokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}
