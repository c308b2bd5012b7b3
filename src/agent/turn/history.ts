import type { TruncationPolicy } from "../../sandbox/index.js";
import { truncateParts, truncateText } from "../../sandbox/index.js";
import {
  type CallOutput,
  isToolCall,
  isToolOutput,
  itemTokens,
  type ResponseItem,
  type ToolCallItem,
  type ToolOutputItem,
} from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";

/** Tools have already cut their outputs to the limit, so only one that is this much longer is cut again. */
const RECORDED_SHARE = 1.2;

/** The conversation as the next request contains it. The cost of `record` does not grow with its length. */
export class History {
  #items: ResponseItem[] = [];
  #pairing = new Pairing();
  readonly #meter: TokenMeter;
  #outputPolicy: TruncationPolicy;

  /** `fixedTokens`: what every request contains besides the items. */
  constructor(policy: TruncationPolicy, { fixedTokens = 0 }: { fixedTokens?: number } = {}) {
    this.#meter = new TokenMeter(fixedTokens);
    this.#outputPolicy = recordedPolicy(policy);
  }

  /** What is recorded already stays as it is. */
  cutOutputsBy(policy: TruncationPolicy): void {
    this.#outputPolicy = recordedPolicy(policy);
  }

  get tokens(): number {
    return this.#meter.total;
  }

  /**
   * Adds an item, except an output without a call, and returns the item as the session file should record it.
   */
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

  /**
   * Takes the endpoint's count for a request and its response. All items of the response must be recorded.
   */
  count(usage: TokenUsage): void {
    this.#meter.count(usage);
  }

  replace(items: readonly ResponseItem[]): void {
    this.#items = normalised(items);
    this.#pairing = new Pairing();
    for (const [index, item] of this.#items.entries()) this.#pairing.add(item, index);
    this.#meter.restart(this.#items);
  }

  /** The items without calls that have no output yet, and without the reasoning that led to them. */
  settledItems(): ResponseItem[] {
    const open = this.#pairing.unanswered();
    const settled = this.#items.filter((_, index) => !open.has(index));
    if (open.size > 0) while (settled.at(-1)?.type === "reasoning") settled.pop();
    return settled;
  }

  /** Returns items in which every call has an output and every output a call. */
  toInput(): ResponseItem[] {
    return withAnswers(this.#items, this.#pairing.unanswered());
  }
}

function recordedPolicy({ mode, limit }: TruncationPolicy): TruncationPolicy {
  return { mode, limit: Math.ceil(limit * RECORDED_SHARE) };
}

/**
 * Removes outputs without a call and adds outputs to calls without one, because endpoints refuse both. Some
 * models use an id again once its call has an output.
 */
export function normalised(items: readonly ResponseItem[]): ResponseItem[] {
  const pairing = new Pairing();
  const paired: ResponseItem[] = [];
  for (const item of items) if (pairing.add(item, paired.length)) paired.push(item);
  return withAnswers(paired, pairing.unanswered());
}

export function outputItem(call: ToolCallItem, output: CallOutput): ToolOutputItem {
  const type = call.type === "custom_tool_call" ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: call.call_id, output };
}

/** Finds the calls without outputs. The cost of `add` does not depend on the ids a model gives its calls. */
class Pairing {
  /** Positions of the calls with an id, oldest first. The first `answered` of them have their outputs. */
  readonly #calls = new Map<string, { positions: number[]; answered: number }>();

  /** Returns false for an output that no call waits for. */
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

/**
 * Measures the conversation: what the endpoint counted last, plus an estimate of what was added since. If the
 * endpoint never counts, all of it is estimated.
 */
class TokenMeter {
  readonly #fixedTokens: number;
  #counted: number;
  #since = 0;

  /** `fixedTokens`: what every request contains besides the items. */
  constructor(fixedTokens: number) {
    this.#fixedTokens = fixedTokens;
    this.#counted = fixedTokens;
  }

  get total(): number {
    return this.#counted + this.#since;
  }

  add(item: ResponseItem): void {
    this.#since += itemTokens(item);
  }

  /** Takes the endpoint's count of everything so far. Some endpoints send zero if they do not count. */
  count({ inputTokens, outputTokens }: TokenUsage): void {
    if (inputTokens + outputTokens === 0) return;
    this.#counted = inputTokens + outputTokens;
    this.#since = 0;
  }

  /** Starts again with other items, which the endpoint has not counted. */
  restart(items: readonly ResponseItem[]): void {
    this.#counted = this.#fixedTokens;
    this.#since = 0;
    for (const item of items) this.add(item);
  }
}
