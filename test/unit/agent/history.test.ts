import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { History, normalised } from "../../../src/agent/history.js";
import {
  isToolCall,
  isToolOutput,
  outputText,
  type ResponseItem,
  textMessage,
} from "../../../src/model/items.js";

const callOf = (id: string): ResponseItem => ({
  type: "function_call",
  call_id: id,
  name: "shell",
  arguments: "{}",
});
const outputOf = (id: string, output = "ok"): ResponseItem => ({
  type: "function_call_output",
  call_id: id,
  output,
});

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

  it("gives every call exactly one output whatever was recorded, and changes nothing that is whole", () => {
    const ids = fc.constantFrom("a", "b", "c");
    const anyItem = fc.oneof(
      ids.map(callOf),
      ids.map((id) => outputOf(id)),
      fc.constant(textMessage("user", "x")),
    );
    const unique = fc.uniqueArray(anyItem, { selector: (item) => JSON.stringify(item) });
    fc.assert(
      fc.property(unique, (items) => {
        const whole = normalised(items);
        const calls = whole.filter(isToolCall).map(({ call_id }) => call_id);
        const outputs = whole.filter(isToolOutput).map(({ call_id }) => call_id);
        expect(outputs.toSorted()).toEqual(calls.toSorted());
        expect(normalised(whole)).toEqual(whole);
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
