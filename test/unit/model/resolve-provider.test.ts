import { describe, expect, it } from "vitest";
import { configSchema } from "../../../src/config/config-schema.js";
import { readEnvironment } from "../../../src/config/env.js";
import { resolveProvider } from "../../../src/model/resolve-provider.js";

function resolve(config: object, variables: Record<string, string> = {}) {
  return resolveProvider(configSchema.parse(config), readEnvironment({ HOME: "/h", ...variables }));
}

describe("resolveProvider", () => {
  it("is OpenAI with its key by default", () => {
    expect(resolve({}, { OPENAI_API_KEY: "k" })).toEqual({
      id: "openai",
      baseUrl: "https://api.openai.com/v1",
      apiKey: "k",
      headers: {},
      query: {},
      maxRequestRetries: 4,
      maxStreamRetries: 5,
      streamIdleTimeoutMs: 300_000,
    });
  });

  it("takes the address from the configuration, else from OPENAI_BASE_URL", () => {
    const variables = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
    expect(resolve({}, variables).baseUrl).toBe("http://127.0.0.1:1/v1");
    expect(resolve({ openai_base_url: "http://127.0.0.1:2/v1" }, variables).baseUrl).toBe(
      "http://127.0.0.1:2/v1",
    );
  });

  it("reads key and headers of a provider from the variables it names", () => {
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
    expect(resolve(config, { LOCAL_KEY: "k", LOCAL_HEADER: "h" })).toEqual({
      id: "local",
      baseUrl: "http://127.0.0.1:8080/v1",
      apiKey: "k",
      headers: { "x-a": "1", "x-b": "h" },
      query: { "api-version": "2" },
      maxRequestRetries: 1,
      maxStreamRetries: 2,
      streamIdleTimeoutMs: 3,
    });
  });

  it("needs no key for a provider that names none", () => {
    expect(resolve({ model_provider: "ollama" }).apiKey).toBeNull();
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
    [{ model_provider: "toString" }, "there is no model provider `toString`"],
    [{ model_provider: "x", model_providers: { x: {} } }, "[model_providers.x] has no base_url"],
    [
      { model_provider: "x", model_providers: { x: { base_url: "http://a/v1", wire_api: "chat" } } },
      '[model_providers.x] has wire_api = "chat", which is not supported',
    ],
    [{ model_providers: { openai: {} } }, "[model_providers.openai] would replace a built-in provider"],
  ])("refuses %j", (config, message) => {
    expect(() => resolve(config)).toThrow(expect.objectContaining({ code: "config.invalid", message }));
  });

  it("refuses an OPENAI_BASE_URL that is no URL", () => {
    expect(() => resolve({}, { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "file:///etc" })).toThrow(
      expect.objectContaining({ code: "config.invalid" }),
    );
  });
});
