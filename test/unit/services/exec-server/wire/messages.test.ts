import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { checkedParams, parseMessage } from "../../../../../src/services/exec-server/wire/messages.js";

describe("a message", () => {
  it.each([
    [
      "a request",
      '{"id":7,"method":"a/b","params":{"x":1}}',
      { kind: "request", id: 7, method: "a/b", params: { x: 1 } },
    ],
    ["a request with a text as id", '{"id":"q","method":"m"}', { kind: "request", id: "q", method: "m" }],
    [
      "a request with what other dialects add",
      '{"jsonrpc":"2.0","id":1,"method":"m","trace":null}',
      { kind: "request" },
    ],
    [
      "a notification",
      '{"method":"initialized","params":{}}',
      { kind: "notification", method: "initialized" },
    ],
    ["a notification with an empty id", '{"id":null,"method":"m"}', { kind: "notification" }],
    ["a response, which nobody asked for", '{"id":3,"result":{}}', { kind: "invalid", id: 3 }],
    ["no JSON", "{", { kind: "invalid", id: -1, reason: "the message is not JSON" }],
    ["a list", "[]", { kind: "invalid", id: -1 }],
    ["an id that is no whole number", '{"id":1.5,"method":"m"}', { kind: "invalid", id: -1 }],
    ["a method that is no text", '{"id":1,"method":2}', { kind: "invalid", id: -1 }],
  ])("%s", (_, text, expected) => {
    expect(parseMessage(text)).toMatchObject(expected);
  });

  it("never throws, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.anything().map((value) => JSON.stringify(value) ?? ""),
        ),
        (text) => {
          expect(["request", "notification", "invalid"]).toContain(parseMessage(text).kind);
        },
      ),
    );
  });

  it("has parameters that are checked, with the field that is wrong", () => {
    const schema = z.looseObject({ argv: z.array(z.string()) });
    expect(checkedParams(schema, { argv: ["a"], more: 1 })).toEqual({ argv: ["a"], more: 1 });
    expect(() => checkedParams(schema, { argv: ["a", 1] })).toThrow(
      expect.objectContaining({ code: -32602, message: expect.stringMatching(/^invalid params: argv\.1: /) }),
    );
    expect(() => checkedParams(schema, undefined)).toThrow(expect.objectContaining({ code: -32602 }));
  });
});
