import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isToolOutput,
  outputText,
  type ResponseItem,
  textMessage,
} from "../../../../src/agent/model/items.js";
import { History, normalised } from "../../../../src/agent/turn/history.js";
import { anyHistory, callOf, outputOf, unpaired } from "../../../support/histories.js";

describe("History", () => {
  it("answers a call without output right after it, and drops an output without call", () => {
    const items = [callOf("a"), callOf("b"), outputOf("b"), outputOf("c"), textMessage("user", "hi")];
    expect(normalised(items)).toEqual([
      callOf("a"),
      outputOf("a", "aborted"),
      callOf("b"),
      outputOf("b"),
      textMessage("user", "hi"),
    ]);
  });

  it("answers a custom call with an output of its own kind", () => {
    const call: ResponseItem = { type: "custom_tool_call", call_id: "a", name: "apply_patch", input: "" };
    expect(normalised([call])[1]).toEqual({
      type: "custom_tool_call_output",
      call_id: "a",
      output: "aborted",
    });
  });

  it("drops an output that comes before its call, and a second one", () => {
    const items = [outputOf("a"), callOf("a"), outputOf("a", "first"), outputOf("a", "second")];
    expect(normalised(items)).toEqual([callOf("a"), outputOf("a", "first")]);
  });

  it("tells two calls of the same id apart: some models count from one in every turn", () => {
    const items = [callOf("a"), outputOf("a", "first"), callOf("a")];
    expect(normalised(items)).toEqual([...items, outputOf("a", "aborted")]);
  });

  it("keeps many calls of one id, with as many outputs", () => {
    const count = 40_000;
    const calls = Array.from({ length: count }, () => callOf("same"));
    const outputs = Array.from({ length: count }, () => outputOf("same"));
    expect(normalised([...calls, ...outputs])).toHaveLength(2 * count);
  });

  it("gives every call exactly one output, after it, whatever was recorded, and changes nothing that is whole", () => {
    fc.assert(
      fc.property(anyHistory, (items) => {
        const whole = normalised(items);
        expect(unpaired(whole)).toEqual([]);
        expect(normalised(whole)).toEqual(whole);
        const history = new History({ mode: "tokens", limit: 100 });
        for (const item of items) history.record(item);
        expect(history.toInput()).toEqual(whole);
      }),
    );
  });

  it("counts with the endpoint, and by estimate from there on; an endpoint that counts zero does not count", () => {
    const usage = { inputTokens: 500, cachedInputTokens: 400, outputTokens: 50, reasoningOutputTokens: 0 };
    const history = new History({ mode: "tokens", limit: 100 }, { fixedTokens: 70 });
    const said = textMessage("user", "x".repeat(400));
    history.record(said);
    const estimate = history.tokens;
    expect(estimate).toBeGreaterThan(170);
    history.count({ ...usage, inputTokens: 0, outputTokens: 0 });
    expect(history.tokens).toBe(estimate);
    history.count(usage);
    expect(history.tokens).toBe(550);
    history.record(said);
    expect(history.tokens).toBe(550 + estimate - 70);
    history.replace([said]);
    expect(history.tokens).toBe(estimate);
  });

  it("goes on with other items in the place of all, whatever they were", () => {
    fc.assert(
      fc.property(anyHistory, anyHistory, anyHistory, (before, instead, after) => {
        const history = new History({ mode: "tokens", limit: 100 });
        for (const item of before) history.record(item);
        history.replace(instead);
        for (const item of after) history.record(item);
        expect(unpaired(history.toInput())).toEqual([]);
        expect(history.toInput().slice(0, 1)).toEqual(normalised([...instead, ...after]).slice(0, 1));
      }),
    );
  });

  it("cuts a recorded output that is more than a fifth over the model's policy", () => {
    const history = new History({ mode: "bytes", limit: 10 });
    history.record(callOf("a"));
    history.record(callOf("b"));
    expect(history.record(outputOf("a", "x".repeat(12)))).toEqual(outputOf("a", "x".repeat(12)));
    expect(history.record(outputOf("b", "x".repeat(13)))).toEqual(
      outputOf("b", "xxxxxx…1 chars truncated…xxxxxx"),
    );
  });

  it("cuts the texts of an output with pictures together, and leaves the pictures", () => {
    const history = new History({ mode: "bytes", limit: 10 });
    const image = { type: "input_image" as const, image_url: "data:image/png;base64,AAAA" };
    const text = (of: string) => ({ type: "input_text" as const, text: of });
    history.record(callOf("a"));
    const output = [text("x".repeat(8)), image, text("y".repeat(8)), text("z"), image];
    expect(history.record({ type: "function_call_output", call_id: "a", output })).toEqual({
      type: "function_call_output",
      call_id: "a",
      output: [
        text("x".repeat(8)),
        image,
        text("yy…4 chars truncated…yy"),
        image,
        text("[omitted 1 text items ...]"),
      ],
    });
  });

  it("never records more of an output than 1.2 times the policy and what says so", () => {
    const policy = fc.record({
      mode: fc.constantFrom("tokens" as const, "bytes" as const),
      limit: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), policy, (text, { mode, limit }) => {
        const history = new History({ mode, limit });
        history.record(callOf("a"));
        const recorded = history.record(outputOf("a", text));
        const output = isToolOutput(recorded) ? outputText(recorded) : "";
        const budget = Math.ceil(limit * 1.2) * (mode === "tokens" ? 4 : 1);
        const cut = /…\d+ (?:tokens|chars) truncated…/.exec(output)?.[0] ?? "";
        if (Buffer.byteLength(text) <= budget) expect(output).toBe(text);
        else expect(Buffer.byteLength(output) - Buffer.byteLength(cut)).toBeLessThanOrEqual(budget);
      }),
    );
  });
});
