import { describe, expect, it } from "vitest";
import { configSchema } from "../../../../src/agent/config/config-schema.js";
import { createModelClient } from "../../../../src/agent/model/create-model-client.js";
import type { ModelProvider } from "../../../../src/agent/model/provider.js";
import {
  configuredWireApi,
  type ProviderLogin,
  resolveProvider,
} from "../../../../src/agent/model/resolve-provider.js";
import { bearerKey } from "../../../../src/agent/model/static-credentials.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { proxyFor, readProxies } from "../../../../src/lib/proxy/proxies.js";
import { startResponsesServer, turn } from "../../../support/responses-server.js";

function resolve(config: object, variables: Record<string, string> = {}, login: ProviderLogin | null = null) {
  const environment = readEnvironment({ HOME: "/h", ...variables });
  return resolveProvider(configSchema.parse(config), environment, { login });
}

function headersOf({ credentials }: ModelProvider) {
  return credentials.headers(new AbortController().signal);
}

describe("resolveProvider", () => {
  it("is OpenAI with its key by default", async () => {
    const provider = resolve({}, { OPENAI_API_KEY: "k" });
    expect(await headersOf(provider)).toEqual({ Authorization: "Bearer k" });
    expect(provider).toMatchObject({
      id: "openai",
      baseUrl: "https://api.openai.com/v1",
      headers: {},
      query: {},
      maxRequestRetries: 4,
      maxStreamRetries: 5,
      streamIdleTimeoutMs: 300_000,
    });
  });

  it("has the proxies of the environment, and refuses what is no proxy without repeating it", () => {
    const through = (variables: Record<string, string>) => {
      const { proxyVariables = {}, baseUrl } = resolve({}, { OPENAI_API_KEY: "k", ...variables });
      return proxyFor(readProxies(proxyVariables), new URL(baseUrl));
    };
    expect(through({})).toBeNull();
    expect(through({ HTTPS_PROXY: "http://p.test:1" })).toMatchObject({ address: { host: "p.test" } });
    expect(through({ HTTPS_PROXY: "http://p.test:1", NO_PROXY: ".openai.com" })).toBeNull();
    const wrong = { HTTPS_PROXY: "ftp://user:secret@p.test" };
    expect(() => through(wrong)).toThrow(/^HTTPS_PROXY of the environment is not the URL of a proxy/);
    expect(() => through(wrong)).not.toThrow(/secret/);
    // It is used for nothing.
    expect(through({ ...wrong, NO_PROXY: "*" })).toBeNull();
  });

  it("takes the address from the configuration, else from OPENAI_BASE_URL", () => {
    const variables = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
    expect(resolve({}, variables).baseUrl).toBe("http://127.0.0.1:1/v1");
    expect(resolve({ openai_base_url: "http://127.0.0.1:2/v1" }, variables).baseUrl).toBe(
      "http://127.0.0.1:2/v1",
    );
  });

  it("reads key and headers of a provider from the variables it names", async () => {
    const provider = {
      base_url: "http://127.0.0.1:8080/v1",
      env_key: "LOCAL_KEY",
      http_headers: { "x-a": "1" },
      env_http_headers: { "x-b": "LOCAL_HEADER", "x-c": "UNSET" },
      query_params: { "api-version": "2" },
      request_max_retries: 1,
      stream_max_retries: 2,
      stream_idle_timeout_ms: 3,
    };
    const config = { model_provider: "local", model_providers: { local: provider } };
    const resolved = resolve(config, { LOCAL_KEY: "k", LOCAL_HEADER: "h" });
    expect(await headersOf(resolved)).toEqual({ Authorization: "Bearer k" });
    expect(resolved).toMatchObject({
      id: "local",
      baseUrl: "http://127.0.0.1:8080/v1",
      headers: { "x-a": "1", "x-b": "h" },
      query: { "api-version": "2" },
      maxRequestRetries: 1,
      maxStreamRetries: 2,
      streamIdleTimeoutMs: 3,
    });
  });

  it.each([
    ["ollama", "http://127.0.0.1:11434/v1"],
    ["lmstudio", "http://127.0.0.1:1234/v1"],
  ])("knows %s, and speaks the wire that every version of it speaks", (id, baseUrl) => {
    expect(resolve({ model_provider: id })).toMatchObject({ id, baseUrl, wireApi: "chat" });
    expect(configuredWireApi(configSchema.parse({ model_provider: id }))).toBe("chat");
  });

  it.each(["chat", "responses"] as const)("speaks the wire that a provider has: %s", (wire_api) => {
    const config = { model_provider: "x", model_providers: { x: { base_url: "http://a/v1", wire_api } } };
    expect(resolve(config).wireApi).toBe(wire_api);
    expect(configuredWireApi(configSchema.parse(config))).toBe(wire_api);
  });

  it("speaks the Responses API where nothing is said, or nothing that makes sense", () => {
    expect(resolve({}, { OPENAI_API_KEY: "k" }).wireApi).toBe("responses");
    for (const config of [{}, { model_provider: "constructor" }])
      expect(configuredWireApi(configSchema.parse(config))).toBe("responses");
  });

  it("needs no key for a provider that names none", async () => {
    expect(await headersOf(resolve({ model_provider: "ollama" }))).toEqual({});
  });

  it("says which variable to set when a key is missing, and never shows another", () => {
    expect(() => resolve({}, { OTHER_KEY: "secret" })).toThrow(
      expect.objectContaining({
        code: "model.auth",
        message: "the model provider openai needs an API key, and OPENAI_API_KEY is not set",
      }),
    );
  });

  it.each([
    [{ model_provider: "opnai" }, "there is no model provider `opnai`"],
    [{ openai_base_url: "http://me:hidden@a/v1" }, "the base_url has a name or password in it"],
    [{ openai_base_url: "http://a/v1?key=hidden" }, "the base_url has a query in it"],
    [{ model_provider: "toString" }, "there is no model provider `toString`"],
    [{ model_provider: "x", model_providers: { x: {} } }, "[model_providers.x] has no base_url"],
    [{ model_providers: { openai: {} } }, "[model_providers.openai] would replace a built-in provider"],
  ])("refuses %j", (config, message) => {
    expect(() => resolve(config)).toThrow(expect.objectContaining({ code: "config.invalid", message }));
  });

  it.each([
    ["scripted", "use: brig run --script FILE"],
    ["replay", "use: brig replay ID|FILE"],
  ])("names the command that has %s, but takes a provider of that name", (id, hint) => {
    expect(() => resolve({ model_provider: id })).toThrow(
      expect.objectContaining({ code: "config.invalid", hint }),
    );
    const model_providers = { [id]: { base_url: "http://a/v1" } };
    expect(resolve({ model_provider: id, model_providers }).baseUrl).toBe("http://a/v1");
  });

  it("refuses an OPENAI_BASE_URL that is no URL", () => {
    expect(() => resolve({}, { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "file:///etc" })).toThrow(
      expect.objectContaining({ code: "config.invalid" }),
    );
  });
});

describe("a login", () => {
  const chatgpt: ProviderLogin = {
    kind: "chatgpt",
    credentials: bearerKey("login"),
    baseUrl: "http://chatgpt/codex",
  };
  const apiKey: ProviderLogin = {
    kind: "api-key",
    credentials: bearerKey("stored"),
    baseUrl: "http://api/v1",
  };
  const own = (more: object) => ({
    model_provider: "x",
    model_providers: { x: { base_url: "http://x/v1", ...more } },
  });

  async function used(
    login: ProviderLogin | null,
    config: object = {},
    variables: Record<string, string> = {},
  ): Promise<[string, string | undefined]> {
    const provider = resolve(config, variables, login);
    return [provider.baseUrl, (await headersOf(provider)).Authorization];
  }

  it.each<[string, ProviderLogin | null, object, Record<string, string>, [string, string | undefined]]>([
    ["goes where it is good for", chatgpt, {}, {}, ["http://chatgpt/codex", "Bearer login"]],
    ["may be a key", apiKey, {}, {}, ["http://api/v1", "Bearer stored"]],
    [
      "comes after a key of the environment",
      chatgpt,
      {},
      { OPENAI_API_KEY: "k" },
      ["https://api.openai.com/v1", "Bearer k"],
    ],
    [
      "goes where the configuration wants it",
      chatgpt,
      { chatgpt_base_url: "http://proxy/codex", openai_base_url: "http://other/v1" },
      {},
      ["http://proxy/codex", "Bearer login"],
    ],
    [
      "goes to the models of a backend that is named as in Codex's configuration",
      chatgpt,
      { chatgpt_base_url: "http://backend/backend-api/" },
      {},
      ["http://backend/backend-api/codex", "Bearer login"],
    ],
    [
      "that is a key goes to OpenAI's address, wherever that is",
      apiKey,
      { chatgpt_base_url: "http://proxy/codex", openai_base_url: "http://other/v1" },
      {},
      ["http://other/v1", "Bearer stored"],
    ],
    [
      "goes where OPENAI_BASE_URL says",
      chatgpt,
      {},
      { OPENAI_BASE_URL: "http://env/v1" },
      ["http://env/v1", "Bearer login"],
    ],
    ["is not for other providers", chatgpt, own({}), {}, ["http://x/v1", undefined]],
    [
      "is for other providers that want it",
      chatgpt,
      own({ requires_openai_auth: true }),
      {},
      ["http://x/v1", "Bearer login"],
    ],
    [
      "is not for a provider with a key of its own",
      chatgpt,
      own({ requires_openai_auth: true, experimental_bearer_token: "own" }),
      {},
      ["http://x/v1", "Bearer own"],
    ],
  ])("%s", async (_, login, config, variables, expected) => {
    expect(await used(login, config, variables)).toEqual(expected);
  });

  it("of another issuer needs to be told where requests go", async () => {
    await expect(used({ ...chatgpt, baseUrl: null })).rejects.toMatchObject({
      code: "config.invalid",
      hint: "set chatgpt_base_url in config.toml",
    });
  });

  it("is missed by a provider that wants one", async () => {
    await expect(used(null, own({ requires_openai_auth: true }))).rejects.toMatchObject({
      code: "model.auth",
      message: "the model provider x needs a login",
    });
  });
});

describe("a provider of config.toml", () => {
  it.each(["responses", "chat"])("decides what its endpoint gets over the wire %s", async (wire_api) => {
    await using server = await startResponsesServer([{ kind: "status", status: 500 }, turn({ text: "ok" })]);
    const config = {
      model_provider: "mine",
      model_providers: {
        mine: {
          wire_api,
          base_url: server.url,
          env_key: "MINE_KEY",
          query_params: { "api-version": "2026-01-01" },
          http_headers: { "x-team": "blue" },
          env_http_headers: { "x-tenant": "MINE_TENANT" },
          request_max_retries: 1,
        },
      },
    };
    const provider = resolve(config, { MINE_KEY: "k", MINE_TENANT: "t", OPENAI_API_KEY: "other" });
    const client = createModelClient({ provider, model: "m", threadId: "t", sleep: async () => undefined });
    const kinds: string[] = [];
    const request = { instructions: "", input: [], tools: [] };
    for await (const { kind } of client.stream(request, new AbortController().signal)) kinds.push(kind);
    expect(kinds.at(-1)).toBe("completed");
    expect(server.requests).toHaveLength(2);
    const [sent] = server.requests;
    const path = wire_api === "chat" ? "chat/completions" : "responses";
    expect(sent?.url).toBe(`/v1/${path}?api-version=2026-01-01`);
    expect(sent?.headers).toMatchObject({ authorization: "Bearer k", "x-team": "blue", "x-tenant": "t" });
    expect(JSON.stringify(server.requests)).not.toContain("other");
  });
});
