import {
  type CallOutput,
  isToolCall,
  isToolOutput,
  type ResponseItem,
  type ToolCallItem,
  type ToolOutputItem,
} from "../../model/items.js";
import type { TokenUsage } from "../../model/model-client.js";
import { type TruncationPolicy, truncateParts, truncateText } from "../../output/truncation.js";
import { TokenMeter } from "../context/context-tokens.js";

/** Outputs are cut by their tools already; this much above that a recorded one may be. */
const RECORDED_SHARE = 1.2;

/** The conversation so far, as it goes into the next request. Recording costs the same however long it is. */
export class History {
  #items: ResponseItem[] = [];
  #pairing = new Pairing();
  readonly #meter: TokenMeter;
  readonly #outputPolicy: TruncationPolicy;

  /** `fixedTokens`: what every request has besides the items. */
  constructor(policy: TruncationPolicy, { fixedTokens = 0 }: { fixedTokens?: number } = {}) {
    this.#meter = new TokenMeter(fixedTokens);
    this.#outputPolicy = { mode: policy.mode, limit: Math.ceil(policy.limit * RECORDED_SHARE) };
  }

  /** How many tokens it is: as the endpoint counted, and by estimate since then. */
  get tokens(): number {
    return this.#meter.total;
  }

  /** Adds an item and returns it as it was recorded. An output without a call is no part of the conversation. */
  record(item: ResponseItem): ResponseItem {
    const recorded = isToolOutput(item)
      ? { ...item, output: shortened(item.output, this.#outputPolicy) }
      : item;
    if (this.#pairing.add(recorded, this.#items.length)) {
      this.#items.push(recorded);
      this.#meter.add(recorded);
    }
    return recorded;
  }

  /** What the endpoint says of a request and its response, all of whose items are recorded. */
  count(usage: TokenUsage): void {
    this.#meter.count(usage);
  }

  /** Puts others in the place of all items. */
  replace(items: readonly ResponseItem[]): void {
    this.#items = normalised(items);
    this.#pairing = new Pairing();
    for (const [index, item] of this.#items.entries()) this.#pairing.add(item, index);
    this.#meter.restart(this.#items);
  }

  /** Every call has its output, and every output its call, whatever happened. */
  toInput(): ResponseItem[] {
    return withAnswers(this.#items, this.#pairing.unanswered());
  }
}

/**
 * An endpoint refuses a conversation with a call that has no output, or an output that has no call before it. Some models use an id
 * again once its call is answered.
 */
export function normalised(items: readonly ResponseItem[]): ResponseItem[] {
  const pairing = new Pairing();
  const paired: ResponseItem[] = [];
  for (const item of items) if (pairing.add(item, paired.length)) paired.push(item);
  return withAnswers(paired, pairing.unanswered());
}

/** The item that answers a call. */
export function outputItem(call: ToolCallItem, output: CallOutput): ToolOutputItem {
  const type = call.type === "custom_tool_call" ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: call.call_id, output };
}

/** Which calls wait for their outputs. Each item costs the same, whatever ids a model gives its calls. */
class Pairing {
  /** The positions of a call's items, oldest first, by its id; so many of the first have their outputs. */
  readonly #calls = new Map<string, { positions: number[]; answered: number }>();

  /** Whether the item has a place in the conversation: an output has one where its call waits for it. */
  add(item: ResponseItem, position: number): boolean {
    if (isToolCall(item)) {
      const calls = this.#calls.get(item.call_id);
      if (calls === undefined) this.#calls.set(item.call_id, { positions: [position], answered: 0 });
      else calls.positions.push(position);
    }
    if (!isToolOutput(item)) return true;
    const calls = this.#calls.get(item.call_id);
    if (calls === undefined) return false;
    calls.answered++;
    if (calls.answered === calls.positions.length) this.#calls.delete(item.call_id);
    return true;
  }

  unanswered(): ReadonlySet<number> {
    return new Set([...this.#calls.values()].flatMap(({ positions, answered }) => positions.slice(answered)));
  }
}

function withAnswers(items: readonly ResponseItem[], unanswered: ReadonlySet<number>): ResponseItem[] {
  if (unanswered.size === 0) return items.slice();
  return items.flatMap((item, index) =>
    isToolCall(item) && unanswered.has(index) ? [item, outputItem(item, "aborted")] : [item],
  );
}

function shortened(output: CallOutput, policy: TruncationPolicy): CallOutput {
  return typeof output === "string" ? truncateText(output, policy) : truncateParts(output, policy);
}
