import { describe, expect, it } from "vitest";
import { listPrices, type ModelPrice } from "../../../../../src/agent/model/prices/list-prices.js";
import { costOfRequest, priceOfModel } from "../../../../../src/agent/model/prices/model-price.js";

const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0 };
const price: ModelPrice = { input: 4, cachedInput: 1, cacheWrite: 5, output: 20 };

describe("the price of a model", () => {
  it("is that of its maker, also behind a gateway's prefix and for a dated snapshot", () => {
    const listed = priceOfModel("gpt-5.2-codex", {});
    expect(listed).toEqual({ input: 1.75, cachedInput: 0.175, cacheWrite: 1.75, output: 14 });
    for (const name of ["openai/gpt-5.2-codex", "gpt-5.2-codex-2025-12-11"])
      expect(priceOfModel(name, {})).toEqual(listed);
    expect(priceOfModel("claude-haiku-4-5-20251001", {})).toMatchObject({ input: 1, output: 5 });
  });

  it("is unknown rather than that of a similar name", () => {
    for (const name of ["gpt-5.2-pro", "gpt-5.25", "gpt", "my-gpt-5.2", "toString", ""])
      expect(priceOfModel(name, {})).toBeNull();
  });

  it("is the user's own, which may be nothing", () => {
    const own = {
      "gpt-5.2": { input: 0, output: 0 },
      "team/qwen": { input: 2, cached_input: 0.5, output: 8 },
    };
    expect(priceOfModel("gpt-5.2", own)).toEqual({ input: 0, cachedInput: 0, cacheWrite: 0, output: 0 });
    expect(priceOfModel("team/qwen", own)).toEqual({ input: 2, cachedInput: 0.5, cacheWrite: 2, output: 8 });
  });

  it("is refused if the user gives half of it", () => {
    expect(() => priceOfModel("m", { m: { output: 1 } })).toThrow(
      'prices."m" in the configuration needs both',
    );
  });

  it("is plausible for every model that brig knows", () => {
    for (const [model, listed] of listPrices) {
      expect(listed.cachedInput, model).toBeLessThan(listed.input);
      expect(listed.output, model).toBeGreaterThan(listed.input);
      expect(listed.output / listed.input, model).toBeLessThanOrEqual(10);
      if (listed.cacheWrite !== undefined) expect(listed.cacheWrite, model).toBe(listed.input * 1.25);
    }
  });
});

describe("the cost of a request", () => {
  it("adds up what is new, cached, written to the cache, and answered", () => {
    const used = { inputTokens: 1000, cachedInputTokens: 600, cacheWriteInputTokens: 100, outputTokens: 50 };
    expect(costOfRequest(price, { ...usage, ...used })).toBeCloseTo(
      (300 * 4 + 600 * 1 + 100 * 5 + 50 * 20) / 1e6,
      12,
    );
  });

  it("takes no part of the input for more than the whole", () => {
    const used = { inputTokens: 100, cachedInputTokens: 5000, cacheWriteInputTokens: 5000 };
    expect(costOfRequest(price, { ...usage, ...used })).toBeCloseTo(100 / 1e6, 12);
  });

  it("is higher as a whole above the length from which a model charges more", () => {
    const long = { ...price, longRequest: { aboveInputTokens: 1000, inputFactor: 2, outputFactor: 1.5 } };
    const cost = (inputTokens: number) =>
      costOfRequest(long, { ...usage, inputTokens, outputTokens: 100 }) * 1e6;
    expect(cost(1000)).toBeCloseTo(4000 + 2000, 6);
    expect(cost(1001)).toBeCloseTo(8008 + 3000, 6);
  });
});
