import { z } from "zod";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { unusableResponse } from "../endpoint/model-failure.js";
import type { ResponseLimits } from "../endpoint/response-limits.js";
import { DamagedStream } from "../endpoint/stream-event.js";
import {
  calledTool,
  isToolCall,
  type MessageItem,
  messageText,
  type ResponseItem,
  type ToolCallItem,
} from "../items.js";
import { parseItem } from "../parse-item.js";

const announcement = z.object({
  output_index: z.number().optional().catch(undefined),
  item: z.object({ type: z.string(), id: z.string().optional().catch(undefined) }),
});
/** What an item says of itself where the limit of output tokens cut it off. */
const cutItem = z.object({ type: z.string(), status: z.literal("incomplete") });

const callTypes: ReadonlySet<string> = new Set<ToolCallItem["type"]>([
  "function_call",
  "custom_tool_call",
  "local_shell_call",
]);

/**
 * The items of one response, each of them once, however often it is sent. At the end it is known what has not
 * come by itself: the last event may contain all items again.
 */
export class ResponseItems {
  readonly #keepsIds: boolean;
  readonly #limits: ResponseLimits;
  readonly #came: ResponseItem[] = [];
  readonly #announcedCalls = new Set<number | string>();
  readonly #repeatable = new Set<string>();
  #hasCutCall = false;
  #text = "";

  constructor({ keepsIds, limits }: { keepsIds: boolean; limits: ResponseLimits }) {
    this.#keepsIds = keepsIds;
    this.#limits = limits;
  }

  addText(delta: string): void {
    this.#text += delta;
  }

  /** Takes note of a call that is to come. */
  announce(event: unknown): void {
    const { output_index, item } = announcement.safeParse(event).data ?? {};
    const key = output_index ?? item?.id;
    if (item !== undefined && key !== undefined && callTypes.has(item.type)) this.#announcedCalls.add(key);
  }

  /** Nothing for a repetition, and for a call that was cut off. */
  *add(value: unknown): Iterable<ResponseItem> {
    if (isCutCall(value)) {
      this.#hasCutCall = true;
      return;
    }
    const item = this.#parse(value);
    if (isToolCall(item)) {
      const identity = JSON.stringify([item.call_id, meaningOf(item)]);
      if (this.#repeatable.has(identity)) return;
      this.#repeatable.add(identity);
    }
    yield this.#keep(item);
  }

  /**
   * The items of a complete response that have not come by themselves. Throws `DamagedStream` if one is
   * missing, or is not what the end of the response says.
   */
  *atEnd(output: readonly unknown[]): Iterable<ResponseItem> {
    const wasEmpty = this.#came.length === 0;
    const whole = output.flatMap((value) => (isCutCall(value) ? [] : this.#readable(value)));
    if (wasEmpty && whole.length < output.length) throw damaged();
    const missing = new Set<ResponseItem>([...this.#missingCalls(whole), ...this.#missingMessages(whole)]);
    for (const item of whole) if (wasEmpty || missing.has(item)) yield this.#keep(item);
    yield* this.#streamedText();
    if (this.#hasCutCall || this.#announcedCalls.size > this.#calls.length) throw damaged();
  }

  /** The text of a response that was cut short, if it has not come as an item. */
  *atCut(output: readonly unknown[]): Iterable<ResponseItem> {
    if (this.#messages.length === 0)
      for (const item of output.flatMap((value) => this.#readable(value)))
        if (isMessage(item)) yield this.#keep(item);
    yield* this.#streamedText();
  }

  get #calls(): readonly ToolCallItem[] {
    return this.#came.filter(isToolCall);
  }

  get #messages(): readonly MessageItem[] {
    return this.#came.filter(isMessage);
  }

  #keep(item: ResponseItem): ResponseItem {
    if (isToolCall(item)) this.#limits.addCall();
    this.#came.push(item);
    return item;
  }

  #missingCalls(output: readonly ResponseItem[]): ToolCallItem[] {
    // Without their ids: some gateways make up new ones for the last event.
    const unmatched = new Map<string, number>();
    for (const call of this.#calls) tally(unmatched, meaningOf(call), 1);
    const missing = output.filter(isToolCall).filter((call) => tally(unmatched, meaningOf(call), -1) < 0);
    if (missing.length > 0 && [...unmatched.values()].some((count) => count > 0)) throw damaged();
    return missing;
  }

  /** Texts are compared without white space, and as a whole: some gateways divide them in another way. */
  #missingMessages(output: readonly ResponseItem[]): MessageItem[] {
    const said = output.filter(isMessage);
    if (this.#messages.length === 0) return said;
    const text = textOf(said);
    if (text !== "" && text !== textOf(this.#messages)) throw damaged();
    return [];
  }

  *#streamedText(): Iterable<ResponseItem> {
    if (this.#text === "" || this.#messages.length > 0) return;
    const content = [{ type: "output_text" as const, text: this.#text }];
    yield this.#keep({ type: "message", role: "assistant", content });
  }

  #parse(value: unknown): ResponseItem {
    try {
      return parseItem(value, { withId: this.#keepsIds });
    } catch (cause) {
      if (!(cause instanceof z.ZodError)) throw cause;
      throw unusableResponse(`the endpoint sent an incomplete item:\n${z.prettifyError(cause)}`);
    }
  }

  #readable(value: unknown): ResponseItem[] {
    try {
      return [parseItem(value, { withId: this.#keepsIds })];
    } catch (cause) {
      if (cause instanceof z.ZodError) return [];
      throw cause;
    }
  }
}

function damaged(): DamagedStream {
  return new DamagedStream("what the endpoint sent is not what it says at the end of the response");
}

function isCutCall(value: unknown): boolean {
  const { data } = cutItem.safeParse(value);
  return data !== undefined && callTypes.has(data.type);
}

function isMessage(item: ResponseItem): item is MessageItem {
  return item.type === "message";
}

/** The same for two calls that do the same. Gateways parse arguments, and write them in another way. */
function meaningOf(call: ToolCallItem): string {
  const { name, input } = calledTool(call);
  const args = parseJson(input);
  const isPlain = args === undefined || isTooDeep(args);
  return JSON.stringify([name, isPlain ? input : args], (_, value) => (isPlain ? value : sorted(value)));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function tally(counts: Map<string, number>, key: string, change: number): number {
  const count = (counts.get(key) ?? 0) + change;
  counts.set(key, count);
  return count;
}

function textOf(messages: readonly MessageItem[]): string {
  return messages.map(messageText).join("").replace(/\s+/g, "");
}
