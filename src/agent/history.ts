import {
  type CallOutput,
  isToolCall,
  isToolOutput,
  type ResponseItem,
  type ToolCallItem,
  type ToolOutputItem,
} from "../model/items.js";
import { type TruncationPolicy, truncateParts, truncateText } from "../tools/truncation.js";

/** Outputs are cut by their tools already; this much above that a recorded one may be. */
const RECORDED_SHARE = 1.2;

/** The conversation so far, as it goes into the next request. */
export class History {
  readonly #items: ResponseItem[] = [];
  readonly #outputPolicy: TruncationPolicy;

  constructor(policy: TruncationPolicy) {
    this.#outputPolicy = { mode: policy.mode, limit: Math.ceil(policy.limit * RECORDED_SHARE) };
  }

  /** Adds an item and returns it as it was recorded. */
  record(item: ResponseItem): ResponseItem {
    const recorded = isToolOutput(item)
      ? { ...item, output: shortened(item.output, this.#outputPolicy) }
      : item;
    this.#items.push(recorded);
    return recorded;
  }

  /** Every call has its output, and every output its call, whatever happened. */
  toInput(): ResponseItem[] {
    return normalised(this.#items);
  }
}

/** An endpoint refuses a conversation with a call that has no output, or an output that has no call. */
export function normalised(items: readonly ResponseItem[]): ResponseItem[] {
  const called = new Set(items.filter(isToolCall).map(({ call_id }) => call_id));
  const answered = new Set(items.filter(isToolOutput).map(({ call_id }) => call_id));
  return items.flatMap((item): ResponseItem[] => {
    if (isToolOutput(item)) return called.has(item.call_id) ? [item] : [];
    return isToolCall(item) && !answered.has(item.call_id) ? [item, outputItem(item, "aborted")] : [item];
  });
}

/** The item that answers a call. */
export function outputItem(call: ToolCallItem, output: CallOutput): ToolOutputItem {
  const type = call.type === "custom_tool_call" ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: call.call_id, output };
}

function shortened(output: CallOutput, policy: TruncationPolicy): CallOutput {
  return typeof output === "string" ? truncateText(output, policy) : truncateParts(output, policy);
}
