import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { Credentials, WireApi } from "../../../../src/agent/model/provider.js";
import { checkHeaders, Secrets } from "../../../../src/agent/model/secrets.js";
import { bearerKey } from "../../../../src/agent/model/static-credentials.js";
import { ask } from "../../../support/model-stream.js";
import { type Reply, turn } from "../../../support/responses-server.js";

const key = "sk-very-secret-0123456789";
const header = "header-secret-0123456789";
const param = "query-secret-0123456789";
const told = `you sent Bearer ${key}, ${header} and ?key=${param}`;
const secret = /0123456789/;

/** Everything that anybody could print of an error. */
function everythingOf(error: unknown): string {
  return inspect(error, { depth: 10, showHidden: true });
}

describe.each<WireApi>(["responses", "chat"])("no key is shown over the wire %s", (wireApi) => {
  const provider = {
    wireApi,
    credentials: bearerKey(key),
    headers: { "x-gateway": header },
    query: { key: param },
    maxRequestRetries: 0,
  };
  const failing = (message: string) => {
    const error = { message, code: "invalid_prompt" };
    return wireApi === "chat" ? { error } : { type: "response.failed", response: { error } };
  };

  it.each<[string, Reply]>([
    ["a refusal quotes it", { kind: "status", status: 401, body: { error: { message: told } } }],
    ["a refusal of another form quotes it", { kind: "status", status: 400, body: { detail: told } }],
    [
      "a server's failure quotes it",
      { kind: "status", status: 500, body: told, headers: { "content-type": "text/plain" } },
    ],
    ["a rate limit quotes it", { kind: "status", status: 429, body: { error: told } }],
    ["a stream quotes it", { kind: "stream", events: [failing(told)] }],
    [
      "a redirect quotes it",
      { kind: "status", status: 302, headers: { location: `http://x/?key=${param}` } },
    ],
    ["nobody answers", { kind: "hang-up" }],
  ])("where %s", async (_, reply) => {
    const { error, events } = await ask([reply], { provider });
    const shown = everythingOf(error ?? events);
    expect(shown).toContain("BrigError");
    expect(shown).not.toMatch(secret);
  });

  it.each<[string, (message: string) => Reply]>([
    ["a refusal", (message) => ({ kind: "status", status: 400, body: { error: { message } } })],
    ["a stream", (message) => ({ kind: "stream", events: [failing(message)] })],
  ])("nor a part of one where %s says more than anybody reads", async (_, reply) => {
    const { error } = await ask([reply(`${header} `.repeat(1000))], { provider });
    const { message } = error as Error;
    expect(message).toHaveLength(2000);
    expect(message).not.toContain("header");
  });

  it("where its address cannot be reached", async () => {
    const { error } = await ask([], {
      provider: { ...provider, baseUrl: "http://someone:password-0123456789@127.0.0.1:9/v1" },
    });
    expect(everythingOf(error)).not.toMatch(secret);
  });

  it.each<[string, Credentials]>([
    ["a line break in the middle", bearerKey(`${key}\nnext`)],
    ["a letter that no header can have", bearerKey(`${key}…`)],
  ])("where it has %s", async (_, credentials) => {
    const { error, requests } = await ask([turn({ text: "ok" })], { provider: { ...provider, credentials } });
    expect(requests).toEqual([]);
    expect(error).toMatchObject({
      code: "config.invalid",
      message: "the value of the header Authorization has a character that is not allowed in headers",
    });
    expect(everythingOf(error)).not.toMatch(secret);
  });
});

describe("a key", () => {
  it("that was read from a file may end in a line break", async () => {
    const { requests } = await ask([turn({ text: "ok" })], { provider: { credentials: bearerKey("k\n") } });
    expect(requests[0]?.headers.authorization).toBe("Bearer k");
  });
});

describe("secrets", () => {
  it("are hidden wherever they stand, the longer ones first", () => {
    const secrets = new Secrets();
    secrets.addCredentials({ Authorization: "Bearer abcd", "x-account": "abcdefgh" });
    expect(secrets.hide("abcd abcdefgh Bearer abcd")).toBe("*** *** ***");
  });

  it.each([
    [
      "what endpoints quote of a key",
      "Incorrect API key provided: sk-proj-abc***wxyz.",
      "Incorrect API key provided: ***",
    ],
    ["nothing else", "the model gpt-5 has no task-runner", "the model gpt-5 has no task-runner"],
  ])("are %s", (_, text, hidden) => {
    expect(new Secrets().hide(text)).toBe(hidden);
  });

  it("are not the short words that headers are full of, nor versions in a query", () => {
    const secrets = new Secrets();
    secrets.addHeaders({ "x-team": "blue" });
    secrets.addQuery({ "api-version": "2026-01-01-preview" });
    expect(secrets.hide("blue 2026-01-01-preview")).toBe("blue 2026-01-01-preview");
  });
});

describe("checkHeaders", () => {
  it.each([
    [{ "x y": "1" }, '"x y" is not a valid header name'],
    [{ "": "1" }, '"" is not a valid header name'],
    [{ "x-a": "a\r\nx-b: c" }, "the value of the header x-a has a character that is not allowed in headers"],
  ])("refuses %j", (headers, message) => {
    expect(() => checkHeaders(headers)).toThrow(expect.objectContaining({ code: "config.invalid", message }));
  });

  it("takes what HTTP takes", () => {
    expect(() => checkHeaders({ "x-a": "tab\tand é" })).not.toThrow();
  });
});
