import { describe, expect, it } from "vitest";
import { classifyRefusal } from "../../../../../src/agent/model/endpoint/model-failure.js";
import { readRefusal } from "../../../../../src/agent/model/endpoint/refusal.js";

function messageOf(status: number, body: unknown, type = "application/json"): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return readRefusal(status, new Headers({ "content-type": type }), text).message;
}

describe("a refusal is read", () => {
  it.each<[string, unknown, string]>([
    [
      "OpenAI's",
      { error: { message: "no", type: "x", code: null, param: null } },
      "HTTP 400 Bad Request: no",
    ],
    [
      "vLLM's",
      { object: "error", message: "no", type: "BadRequestError", code: 400 },
      "HTTP 400 Bad Request: no",
    ],
    ["Ollama's", { error: "no" }, "HTTP 400 Bad Request: no"],
    ["FastAPI's", { detail: "no" }, "HTTP 400 Bad Request: no"],
    [
      "FastAPI's of a field",
      { detail: [{ loc: ["body", "tools", 0], msg: "no", type: "missing" }] },
      "HTTP 400 Bad Request: body.tools.0: no",
    ],
    ["Google's", [{ error: { code: 400, message: "no", status: "X" } }], "HTTP 400 Bad Request: no"],
    ["one that says nothing", {}, "HTTP 400 Bad Request"],
    ["one that is null", null, "HTTP 400 Bad Request"],
    ["one whose error is odd", { error: 7 }, "HTTP 400 Bad Request"],
    ["half of one", '{"error":{"mess', "HTTP 400 Bad Request"],
  ])("in %s words", (_, body, message) => {
    expect(messageOf(400, body)).toBe(message);
  });

  it("as text where it is that", () => {
    expect(messageOf(503, "upstream is down\n", "text/plain")).toBe(
      "HTTP 503 Service Unavailable: upstream is down",
    );
  });

  it("without the web page that a proxy makes of it", () => {
    expect(messageOf(502, "<html><h1>Bad</h1></html>", "text/html")).toBe("HTTP 502 Bad Gateway");
    expect(messageOf(502, " <!doctype html>", "text/plain")).toBe("HTTP 502 Bad Gateway");
  });

  it("with a status that has no name", () => {
    expect(messageOf(529, { error: { message: "busy" } })).toBe("HTTP 529: busy");
  });
});

describe("a refusal is told apart", () => {
  const kindOf = (status: number | undefined, message: string, more: { code?: string; type?: string } = {}) =>
    classifyRefusal({ status, message, ...more }).kind;

  it.each<[number | undefined, string]>([
    [400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"],
    [400, "the request exceeds the available context size (4096 tokens), try increasing it"],
    [400, "prompt is too long: 210000 tokens > 200000 maximum"],
    [400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."],
    [400, "Your input exceeds the context window of this model."],
    [413, "too many tokens"],
    [422, "too many prompt tokens"],
    [undefined, "maximum context length"],
  ])("%s %j: the context window is full", (status, message) => {
    expect(kindOf(status, message)).toBe("context-window");
  });

  it.each<[number | undefined, string, { code?: string; type?: string }, string]>([
    [400, "no", { type: "exceed_context_size_error" }, "context-window"],
    [400, "billing", { code: "billing_hard_limit_reached" }, "quota"],
    [429, "limit", { type: "usage_limit_reached" }, "quota"],
    [429, "slow down", {}, "rate-limit"],
    [500, "maximum context length", {}, "server"],
    [529, "overloaded", {}, "server"],
    [503, "busy", { code: "slow_down" }, "server"],
    [undefined, "busy", { code: "slow_down" }, "overloaded"],
    [400, "max_tokens is too large", {}, "refused"],
    [404, "no such model", {}, "refused"],
    [undefined, "odd", { code: "constructor" }, "server"],
  ])("%s %j %j: %s", (status, message, more, kind) => {
    expect(kindOf(status, message, more)).toBe(kind);
  });
});
