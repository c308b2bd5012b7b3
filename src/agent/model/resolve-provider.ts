import { BrigError } from "../../errors.js";
import { type ProxyVariables, proxyFor, proxyVariables, readProxies } from "../../lib/proxy/proxies.js";
import { suggest } from "../../lib/suggest.js";
import type { LoginKind } from "./login/login-kind.js";
import type { Credentials, ModelProvider, WireApi } from "./provider.js";
import { type ProviderConfig, providerSchema } from "./provider-schema.js";
import { bearerKey, noCredentials } from "./static-credentials.js";

export const OPENAI_URL = "https://api.openai.com/v1";

const localProviders: Readonly<Record<string, string>> = {
  ollama: "http://127.0.0.1:11434/v1",
  lmstudio: "http://127.0.0.1:1234/v1",
};
/** Providers in session files that are not endpoints, and the command that uses each. */
const notEndpoints: Readonly<Record<string, { is: string; command: string }>> = {
  scripted: { is: "a script instead of a model", command: "brig run --script FILE" },
  replay: { is: "a recorded session instead of a model", command: "brig replay ID|FILE" },
};
const builtIn = ["openai", ...Object.keys(localProviders)];

/** The login that `brig login` has stored, ready for use. */
export interface ProviderLogin {
  kind: LoginKind;
  credentials: Credentials;
  /** The endpoint that accepts it; null if only the configuration can say. */
  baseUrl: string | null;
}

export interface ResolveProviderOptions {
  /** Used if no key is set, by OpenAI and by providers with `requires_openai_auth`. Default: none. */
  login?: ProviderLogin | null | undefined;
}

/** The keys of config.toml about the endpoint. */
export interface ProviderChoice {
  /** Default: openai. */
  readonly model_provider?: string | undefined;
  readonly model_providers: Readonly<Record<string, ProviderConfig>>;
  readonly openai_base_url?: string | undefined;
  readonly chatgpt_base_url?: string | undefined;
}

type Variables = Readonly<Record<string, string>>;

interface ModelEnvironment {
  /** All variables, since the `env_key` of a provider may name any. */
  readonly variables: Variables;
  readonly openaiBaseUrl: string | undefined;
}

/**
 * The configured provider, with its key from the environment or with the login. Errors: `config.invalid` for
 * an incomplete provider, `model.auth` for a missing key.
 */
export function resolveProvider(
  config: ProviderChoice,
  environment: ModelEnvironment,
  { login = null }: ResolveProviderOptions = {},
): ModelProvider {
  refuseReplacedBuiltIn(config);
  const id = config.model_provider ?? "openai";
  const provider = providerConfig(id, config);
  const key = keyOf(provider, environment.variables);
  const usedLogin = wantsLogin(id, { provider, key }) ? login : null;
  const baseUrl = baseUrlOf(id, { provider, config, environment, login: usedLogin });
  return {
    id,
    wireApi: provider.wire_api,
    baseUrl,
    proxyVariables: proxiesFor(baseUrl, environment.variables),
    credentials: usedLogin?.credentials ?? credentialsOf(id, provider, key),
    headers: { ...provider.http_headers, ...headersFromEnvironment(provider, environment.variables) },
    query: provider.query_params,
    maxRequestRetries: provider.request_max_retries,
    maxStreamRetries: provider.stream_max_retries,
    streamIdleTimeoutMs: provider.stream_idle_timeout_ms,
    responseTimeoutMs: provider.response_timeout_ms,
  };
}

/** Whether the configured provider is used with a login: it accepts one, and no key is set. */
export function takesLogin(
  config: ProviderChoice,
  environment: Pick<ModelEnvironment, "variables">,
): boolean {
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

/** The wire API of the configured provider; Responses if the provider is not configured. */
export function configuredWireApi(config: ProviderChoice): WireApi {
  const id = config.model_provider ?? "openai";
  if (Object.hasOwn(localProviders, id)) return "chat";
  return (Object.hasOwn(config.model_providers, id) && config.model_providers[id]?.wire_api) || "responses";
}

export function isKnownProvider(id: string, { model_providers }: ProviderChoice): boolean {
  return builtIn.includes(id) || Object.hasOwn(model_providers, id);
}

function refuseReplacedBuiltIn({ model_providers }: ProviderChoice): void {
  const replaced = builtIn.find((id) => Object.hasOwn(model_providers, id));
  if (replaced !== undefined)
    throw invalid(
      `[model_providers.${replaced}] would replace a built-in provider`,
      "rename it, and set model_provider to the new name",
    );
}

function providerConfig(id: string, config: ProviderChoice): ProviderConfig {
  if (id === "openai")
    return providerSchema.parse({
      env_key: "OPENAI_API_KEY",
      env_key_instructions: "get a key from your provider, or log in with brig login",
    });
  // All their versions with tools speak Chat Completions; the Responses API came later.
  if (Object.hasOwn(localProviders, id))
    return providerSchema.parse({ base_url: localProviders[id], wire_api: "chat" });
  const provider = Object.hasOwn(config.model_providers, id) ? config.model_providers[id] : undefined;
  if (provider !== undefined) return provider;
  const notEndpoint = Object.hasOwn(notEndpoints, id) ? notEndpoints[id] : undefined;
  if (notEndpoint !== undefined)
    throw invalid(
      `\`${id}\` is ${notEndpoint.is} and cannot be the model_provider`,
      `use: ${notEndpoint.command}`,
    );
  const known = [...builtIn, ...Object.keys(config.model_providers)];
  const meant = suggest(id, known);
  throw invalid(
    `there is no model provider \`${id}\``,
    meant === null
      ? `the known ones are ${known.join(", ")}; to add one, put [model_providers.${id}] into config.toml`
      : `did you mean ${meant}?`,
  );
}

/** The error does not quote the variable, because it may contain a password. */
function proxiesFor(baseUrl: string, variables: Variables): ProxyVariables {
  const proxy = proxyFor(readProxies(variables), new URL(baseUrl));
  if (proxy !== null && proxy.address === null)
    throw invalid(
      `${proxy.variable} of the environment is not the URL of a proxy that brig can use`,
      "write http://HOST:PORT, with USER:PASSWORD@ before the host if it asks for them; https:// and socks5:// work, too",
    );
  return proxyVariables(variables);
}

interface Address {
  provider: ProviderConfig;
  config: ProviderChoice;
  environment: ModelEnvironment;
  login: ProviderLogin | null;
}

function baseUrlOf(id: string, { provider, config, environment, login }: Address): string {
  // As in Codex, chatgpt_base_url ends with /backend-api; its models are below /backend-api/codex.
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
    throw invalid(
      "the address of the endpoint is not set for this login",
      "set chatgpt_base_url in config.toml",
    );
  throw invalid(
    `[model_providers.${id}] has no base_url`,
    "set it to the address of its API, up to and including /v1",
  );
}

/** The error does not quote the address, because it may contain a password. */
function checkedUrl(url: string, name: string): string {
  if (!providerSchema.shape.base_url.safeParse(url).success)
    throw invalid(`${name} is not an http or https URL`, "for example: http://127.0.0.1:8080/v1");
  const { username, password, search } = new URL(url);
  if (username !== "" || password !== "")
    throw invalid(
      `${name} has a name or password in it`,
      'give them in env_http_headers, e.g. { "Authorization" = "MY_VARIABLE" }',
    );
  // The path of a request is appended to it and would become part of the query.
  if (search !== "")
    throw invalid(`${name} has a query in it`, 'give it in query_params, e.g. { "api-version" = "…" }');
  return url;
}

function keyOf(provider: ProviderConfig, variables: Variables): string | null {
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
  variables: Variables,
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
