import { type Config, type ProviderConfig, providerSchema } from "../config/config-schema.js";
import type { Environment } from "../config/env.js";
import { BrigError } from "../errors.js";
import { suggest } from "../lib/suggest.js";
import type { ModelProvider } from "./provider.js";

const OPENAI_URL = "https://api.openai.com/v1";

/** Providers that need no configuration. */
const localProviders: Readonly<Record<string, string>> = {
  ollama: "http://127.0.0.1:11434/v1",
  lmstudio: "http://127.0.0.1:1234/v1",
};
const builtIn = ["openai", ...Object.keys(localProviders)];

/**
 * The provider that the configuration names, with its key from the environment. A provider that is not whole is
 * `config.invalid`, a missing key `model.auth`.
 */
export function resolveProvider(
  config: Pick<Config, "model_provider" | "model_providers" | "openai_base_url">,
  environment: Pick<Environment, "variables" | "openaiApiKey" | "openaiBaseUrl">,
): ModelProvider {
  const overridden = builtIn.find((id) => Object.hasOwn(config.model_providers, id));
  if (overridden !== undefined)
    throw invalid(
      `[model_providers.${overridden}] would replace a built-in provider`,
      "give it another name",
    );
  const id = config.model_provider ?? "openai";
  const provider = providerConfig(id, config, environment);
  if (provider.wire_api === "chat")
    throw invalid(`[model_providers.${id}] has wire_api = "chat", which is not supported`, 'use "responses"');
  if (provider.base_url === undefined)
    throw invalid(`[model_providers.${id}] has no base_url`, "add the address of its API, up to /v1");
  return {
    id,
    baseUrl: provider.base_url,
    apiKey: apiKeyOf(id, provider, environment.variables),
    headers: { ...provider.http_headers, ...headersFromEnvironment(provider, environment.variables) },
    query: provider.query_params,
    maxRequestRetries: provider.request_max_retries,
    maxStreamRetries: provider.stream_max_retries,
    streamIdleTimeoutMs: provider.stream_idle_timeout_ms,
  };
}

function providerConfig(
  id: string,
  config: Pick<Config, "model_providers" | "openai_base_url">,
  environment: Pick<Environment, "openaiBaseUrl">,
): ProviderConfig {
  if (id === "openai")
    return providerSchema.parse({
      base_url: config.openai_base_url ?? checkedUrl(environment.openaiBaseUrl) ?? OPENAI_URL,
      env_key: "OPENAI_API_KEY",
      env_key_instructions: "get a key from your provider",
    });
  if (Object.hasOwn(localProviders, id)) return providerSchema.parse({ base_url: localProviders[id] });
  const provider = Object.hasOwn(config.model_providers, id) ? config.model_providers[id] : undefined;
  if (provider !== undefined) return provider;
  const known = [...builtIn, ...Object.keys(config.model_providers)];
  const meant = suggest(id, known);
  throw invalid(
    `there is no model provider \`${id}\``,
    meant === null
      ? `there are ${known.join(", ")}; add [model_providers.${id}] to config.toml`
      : `did you mean ${meant}?`,
  );
}

function checkedUrl(url: string | undefined): string | undefined {
  if (url === undefined || providerSchema.shape.base_url.safeParse(url).success) return url;
  throw invalid("OPENAI_BASE_URL is not an http or https URL", "for example: http://127.0.0.1:8080/v1");
}

function apiKeyOf(id: string, provider: ProviderConfig, variables: Environment["variables"]): string | null {
  if (provider.experimental_bearer_token !== undefined) return provider.experimental_bearer_token;
  if (provider.env_key === undefined) return null;
  const key = variables[provider.env_key];
  if (key !== undefined) return key;
  throw new BrigError(`the model provider ${id} needs an API key, and ${provider.env_key} is not set`, {
    code: "model.auth",
    hint: `export ${provider.env_key}=…; ${provider.env_key_instructions ?? "or choose another model_provider"}`,
  });
}

function headersFromEnvironment(
  { env_http_headers }: ProviderConfig,
  variables: Environment["variables"],
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env_http_headers).flatMap(([header, name]) => {
      const value = variables[name];
      return value === undefined ? [] : [[header, value] as const];
    }),
  );
}

function invalid(message: string, hint: string): BrigError {
  return new BrigError(message, { code: "config.invalid", hint });
}
