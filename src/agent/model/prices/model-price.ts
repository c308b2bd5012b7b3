import { BrigError } from "../../../errors.js";
import type { TokenUsage } from "../model-client.js";
import { listPrices, type ModelPrice } from "./list-prices.js";
import type { OwnPrices } from "./prices-schema.js";

/**
 * The user's own price for the model, or what its maker asks for. Null if neither is known: a cost is never guessed
 * from a similar name. Error: `config.invalid` for half a price of the user's.
 */
export function priceOfModel(model: string, own: OwnPrices): ModelPrice | null {
  const configured = Object.hasOwn(own, model) ? own[model] : undefined;
  if (configured !== undefined) {
    const { input, output } = configured;
    if (input === undefined || output === undefined) throw halfPrice(model);
    const { cached_input = input, cache_write_input = input } = configured;
    return { input, cachedInput: cached_input, cacheWrite: cache_write_input, output };
  }
  const listed = listPrices.get(model) ?? listPrices.get(baseName(model));
  return listed === undefined ? null : { cacheWrite: listed.input, ...listed };
}

function halfPrice(model: string): BrigError {
  return new BrigError(`prices.${JSON.stringify(model)} in the configuration needs both input and output`, {
    code: "config.invalid",
    hint: "both are in US dollars for a million tokens; 0 is possible",
  });
}

/** `openai/gpt-5.2-2025-12-11` is `gpt-5.2`: gateways name the maker first, and makers date their snapshots. */
function baseName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, "");
}

const MILLION = 1_000_000;

/** The cost of one request in US dollars. */
export function costOfRequest(price: ModelPrice, usage: TokenUsage): number {
  const { inputTokens, cachedInputTokens, cacheWriteInputTokens = 0, outputTokens } = usage;
  // An endpoint may count wrongly, and no part of the input is more than all of it.
  const cached = Math.min(cachedInputTokens, inputTokens);
  const written = Math.min(cacheWriteInputTokens, inputTokens - cached);
  const plain = inputTokens - cached - written;
  const { longRequest: long } = price;
  const isLong = long !== undefined && inputTokens > long.aboveInputTokens;
  const input = plain * price.input + cached * price.cachedInput + written * price.cacheWrite;
  const output = outputTokens * price.output;
  return ((isLong ? long.inputFactor : 1) * input + (isLong ? long.outputFactor : 1) * output) / MILLION;
}
