import type { Config, ProviderConfig } from "../config/config-schema.js";
import type { Environment } from "../config/env.js";
import { providerSchema } from "../config/provider-schema.js";
import { BrigError } from "../errors.js";
import { suggest } from "../lib/suggest.js";
import type { Credentials, ModelProvider, WireApi } from "./provider.js";
import { bearerKey, noCredentials } from "./static-credentials.js";

export const OPENAI_URL = "https://api.openai.com/v1";

/** Providers that need no configuration. */
const localProviders: Readonly<Record<string, string>> = {
  ollama: "http://127.0.0.1:11434/v1",
  lmstudio: "http://127.0.0.1:1234/v1",
};
/** What is no endpoint though it stands in for one, and the command that has it. */
const standIns: Readonly<Record<string, { is: string; command: string }>> = {
  scripted: { is: "a script in the place of a model", command: "brig run --script FILE" },
  replay: { is: "a recorded session in the place of a model", command: "brig replay ID|FILE" },
};
const builtIn = ["openai", ...Object.keys(localProviders)];

/** What `brig login` has stored, ready for use. */
export interface ProviderLogin {
  kind: "chatgpt" | "api-key";
  credentials: Credentials;
  /** Where it is good for; null where only the configuration knows. */
  baseUrl: string | null;
}

export interface ResolveProviderOptions {
  /** Used where no key is set, by OpenAI and by providers with `requires_openai_auth`. Default: nobody has logged in. */
  login?: ProviderLogin | null | undefined;
}

type ModelConfig = Pick<
  Config,
  "model_provider" | "model_providers" | "openai_base_url" | "chatgpt_base_url"
>;
type ModelEnvironment = Pick<Environment, "variables" | "openaiApiKey" | "openaiBaseUrl">;

/**
 * The provider that the configuration names, with its key from the environment, or the login. A provider that is not whole is
 * `config.invalid`, a missing key `model.auth`.
 */
export function resolveProvider(
  config: ModelConfig,
  environment: ModelEnvironment,
  { login = null }: ResolveProviderOptions = {},
): ModelProvider {
  refuseReplaced(config);
  const id = config.model_provider ?? "openai";
  const provider = providerConfig(id, config);
  const key = keyOf(provider, environment.variables);
  const usedLogin = wantsLogin(id, { provider, key }) ? login : null;
  return {
    id,
    wireApi: provider.wire_api,
    baseUrl: baseUrlOf(id, { provider, config, environment, login: usedLogin }),
    credentials: usedLogin?.credentials ?? credentialsOf(id, provider, key),
    headers: { ...provider.http_headers, ...headersFromEnvironment(provider, environment.variables) },
    query: provider.query_params,
    maxRequestRetries: provider.request_max_retries,
    maxStreamRetries: provider.stream_max_retries,
    streamIdleTimeoutMs: provider.stream_idle_timeout_ms,
    responseTimeoutMs: provider.response_timeout_ms,
  };
}

/** Whether the provider that the configuration names is used with a login: it takes one, and no key is set. */
export function takesLogin(config: ModelConfig, environment: Pick<Environment, "variables">): boolean {
  const id = config.model_provider ?? "openai";
  const provider = providerConfig(id, config);
  return wantsLogin(id, { provider, key: keyOf(provider, environment.variables) });
}

function wantsLogin(
  id: string,
  { provider, key }: { provider: ProviderConfig; key: string | null },
): boolean {
  return key === null && (id === "openai" || provider.requires_openai_auth);
}

/** Which wire the configured provider speaks; Responses for one that is not configured. */
export function configuredWireApi(config: ModelConfig): WireApi {
  const id = config.model_provider ?? "openai";
  if (Object.hasOwn(localProviders, id)) return "chat";
  return (Object.hasOwn(config.model_providers, id) && config.model_providers[id]?.wire_api) || "responses";
}

function refuseReplaced({ model_providers }: ModelConfig): void {
  const replaced = builtIn.find((id) => Object.hasOwn(model_providers, id));
  if (replaced !== undefined)
    throw invalid(
      `[model_providers.${replaced}] would replace a built-in provider`,
      "give it another name, and name that in model_provider",
    );
}

function providerConfig(id: string, config: ModelConfig): ProviderConfig {
  if (id === "openai")
    return providerSchema.parse({
      env_key: "OPENAI_API_KEY",
      env_key_instructions: "get a key from your provider, or log in with brig login",
    });
  // Every version of theirs that knows tools speaks Chat Completions; the Responses API came later.
  if (Object.hasOwn(localProviders, id))
    return providerSchema.parse({ base_url: localProviders[id], wire_api: "chat" });
  const provider = Object.hasOwn(config.model_providers, id) ? config.model_providers[id] : undefined;
  if (provider !== undefined) return provider;
  const standIn = Object.hasOwn(standIns, id) ? standIns[id] : undefined;
  if (standIn !== undefined)
    throw invalid(`\`${id}\` is ${standIn.is}, and not set as the model_provider`, `use: ${standIn.command}`);
  const known = [...builtIn, ...Object.keys(config.model_providers)];
  const meant = suggest(id, known);
  throw invalid(
    `there is no model provider \`${id}\``,
    meant === null
      ? `there are ${known.join(", ")}; add [model_providers.${id}] to config.toml`
      : `did you mean ${meant}?`,
  );
}

interface Address {
  provider: ProviderConfig;
  config: ModelConfig;
  environment: ModelEnvironment;
  /** Null where a key is used. */
  login: ProviderLogin | null;
}

function baseUrlOf(id: string, { provider, config, environment, login }: Address): string {
  // Codex's key of this name ends before the part that its models are behind.
  const forLogin =
    login?.kind === "chatgpt"
      ? config.chatgpt_base_url?.replace(/\/backend-api\/?$/, "/backend-api/codex")
      : undefined;
  const forOpenai = config.openai_base_url ?? environment.openaiBaseUrl;
  const own = id === "openai" ? (forLogin ?? forOpenai) : provider.base_url;
  const usual = login === null ? (id === "openai" ? OPENAI_URL : null) : login.baseUrl;
  const url = own ?? usual;
  if (url !== null)
    return checkedUrl(url, own === environment.openaiBaseUrl ? "OPENAI_BASE_URL" : "the base_url");
  if (id === "openai")
    throw invalid("the login says nothing of where requests go", "set chatgpt_base_url in config.toml");
  throw invalid(`[model_providers.${id}] has no base_url`, "add the address of its API, up to /v1");
}

/** Never says the address itself: it may hold a password. */
function checkedUrl(url: string, name: string): string {
  if (!providerSchema.shape.base_url.safeParse(url).success)
    throw invalid(`${name} is not an http or https URL`, "for example: http://127.0.0.1:8080/v1");
  const { username, password, search } = new URL(url);
  if (username !== "" || password !== "")
    throw invalid(
      `${name} has a name or password in it`,
      'give them in env_http_headers, e.g. { "Authorization" = "MY_VARIABLE" }',
    );
  // The path of a request goes behind it, and would become a part of the query.
  if (search !== "")
    throw invalid(`${name} has a query in it`, 'give it in query_params, e.g. { "api-version" = "…" }');
  return url;
}

function keyOf(provider: ProviderConfig, variables: Environment["variables"]): string | null {
  const { experimental_bearer_token: token, env_key } = provider;
  return token ?? (env_key === undefined ? null : (variables[env_key] ?? null));
}

function credentialsOf(id: string, provider: ProviderConfig, key: string | null): Credentials {
  if (key !== null) return bearerKey(key);
  const { env_key, env_key_instructions: instructions, requires_openai_auth: needsLogin } = provider;
  if (env_key !== undefined)
    throw new BrigError(`the model provider ${id} needs an API key, and ${env_key} is not set`, {
      code: "model.auth",
      hint: `export ${env_key}=…; ${instructions ?? "or choose another model_provider"}`,
    });
  if (!needsLogin) return noCredentials;
  throw new BrigError(`the model provider ${id} needs a login`, {
    code: "model.auth",
    hint: "log in: brig login",
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
