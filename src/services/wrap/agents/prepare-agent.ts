import { join } from "node:path";
import { invalidUsage } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import {
  type Configuration,
  type ConfigurationFile,
  collectConfiguration,
} from "../configuration/collect-files.js";
import type { ConfigAccess } from "../wrap-flags.js";
import { type ChatGptLogin, findCodexLogin } from "./codex-login.js";
import { type CodexProvider, readCodexProvider } from "./codex-provider.js";
import { addressReaders } from "./configured-address.js";
import { type AgentKey, findAgent, type KnownAgent, withoutOwnSandbox } from "./known-agents.js";
import { hostOf, isPlainHttp, seenFromInside } from "./model-address.js";

/** A key of this machine that the agent may use without seeing it. */
interface HeldKey extends AgentKey {
  value: string;
}

/** Everything about an agent that is known before its sandbox is opened. */
export interface PreparedAgent {
  /** Null for a program that brig does not know. */
  agent: KnownAgent | null;
  argv: readonly string[];
  keys: readonly HeldKey[];
  /** Entries of an allow-list. */
  hosts: readonly string[];
  configuration: Configuration;
  /** Variables for the agent. They contain no secrets. */
  variables: Readonly<Record<string, string>>;
  /** The only requests that hosts named here get. */
  rules: readonly { host: string; path: string }[];
  /** The file of a login that the agent needs inside. */
  login: InsideLogin | null;
  /** The variables of keys that the agent could use. Empty if it has a key. */
  missing: readonly string[];
  /** Notes for the user, as sentences without a full stop. */
  notes: readonly string[];
}

/** A login in which the placeholders of these variables stand for what is outside. */
export type InsideLogin =
  | { kind: "key"; path: string; key: string }
  | { kind: "chatgpt"; path: string; login: ChatGptLogin };

export interface AgentRequest {
  argv: readonly string[];
  agent: string | undefined;
  secrets: readonly AgentKey[];
  access: ConfigAccess;
  /** The variables of `--env`, which the agent gets as they are. A key among them gets no placeholder. */
  shown: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

const CODEX_CONFIG = ".codex/config.toml";
const CODEX_LOGIN = ".codex/auth.json";

/** Reads the agent's configuration and keys from this machine. Error: `usage.invalid`. */
export async function prepareAgent(request: AgentRequest, environment: Environment): Promise<PreparedAgent> {
  const agent = findAgent(request.argv, request.agent);
  const given = request.secrets.map((key) => heldKey(key, environment) ?? missingSecret(key));
  if (agent === null)
    return {
      agent,
      argv: request.argv,
      keys: given,
      hosts: given.flatMap(({ hosts }) => hosts),
      configuration: { files: [], leftOut: [] },
      variables: {},
      rules: [],
      login: null,
      missing: [],
      notes: [],
    };
  const secrets = Object.entries(environment.variables)
    .filter(([name, value]) => isSecretVariable(name, agent) && value.length >= MIN_SECRET_CHARS)
    .map(([, value]) => value);
  const configuration =
    request.access === "none"
      ? { files: [], leftOut: [] }
      : await collectConfiguration({
          paths: agent.files,
          locate: (path) => locate(path, agent, environment),
          secrets: [...secrets, ...given.map(({ value }) => value)],
        });
  const prepared =
    agent.name === "codex"
      ? await codex(configuration, environment, request.signal)
      : plain(agent, configuration, environment);
  const keys = [...prepared.keys, ...given].filter(({ variable }) => !Object.hasOwn(request.shown, variable));
  const argv = withoutOwnSandbox(request.argv, agent);
  return {
    agent,
    argv,
    keys,
    hosts: [...new Set([...agent.hosts, ...prepared.hosts, ...keys.flatMap(({ hosts }) => hosts)])],
    configuration: prepared.configuration ?? configuration,
    variables: { ...agent.environment, ...setVariables(agent.variables, environment), ...prepared.variables },
    rules: prepared.rules ?? [],
    login: prepared.login ?? null,
    notes: [
      ...(prepared.notes ?? []),
      ...(argv.length > request.argv.length
        ? [`${agent.name}'s own sandbox is off, since it runs in this one`]
        : []),
    ],
    missing: keys.length === 0 ? prepared.wanted.map(({ variable }) => variable) : [],
  };
}

interface PreparedKeys {
  /** The keys that the agent could use. */
  wanted: readonly AgentKey[];
  keys: readonly HeldKey[];
  hosts: readonly string[];
  /** Default: the configuration as it was read. */
  configuration?: Configuration;
  rules?: PreparedAgent["rules"];
  login?: PreparedAgent["login"];
  notes?: readonly string[];
  /** Default: none. */
  variables?: Readonly<Record<string, string>>;
}

/**
 * Addresses in the agent's own configuration come before those of variables, as they do for the agent. An agent of one
 * provider gets that provider's host even without a key.
 */
function plain(agent: KnownAgent, configuration: Configuration, environment: Environment): PreparedKeys {
  const { files, keys: configured, hosts } = configuredAddresses(agent, configuration);
  const variables: Record<string, string> = {};
  const known = agent.keys.map((key): AgentKey => {
    const { addressVariable = "" } = key;
    const address = environment.variables[addressVariable];
    if (address === undefined) return key;
    const { url } = seenFromInside(address);
    variables[addressVariable] = url;
    return { ...key, hosts: hostOf(url), isPlainHttp: isPlainHttp(url) };
  });
  const isConfigured = ({ variable }: AgentKey) => configured.some((one) => one.variable === variable);
  const wanted = [...mergedKeys(configured), ...known.filter((key) => !isConfigured(key))];
  const keys = wanted.map((key) => heldKey(key, environment)).filter((key) => key !== null);
  const needed = keys.length > 0 ? [] : (wanted[0]?.hosts ?? []);
  return {
    wanted,
    keys,
    hosts: [...hosts, ...needed],
    variables,
    configuration: { ...configuration, files },
  };
}

/** Merges keys of the same variable: it is for all their hosts, and sent without TLS only if all of them use plain HTTP. */
function mergedKeys(keys: readonly AgentKey[]): AgentKey[] {
  const merged = new Map<string, AgentKey>();
  for (const key of keys) {
    const { hosts = [], isPlainHttp: isPlain = true } = merged.get(key.variable) ?? {};
    merged.set(key.variable, {
      ...key,
      hosts: [...new Set([...hosts, ...key.hosts])],
      isPlainHttp: isPlain && key.isPlainHttp === true,
    });
  }
  return [...merged.values()];
}

/** The addresses in the files of the configuration, and the files as the sandbox needs them. */
function configuredAddresses(
  { name, keys: known }: KnownAgent,
  { files }: Configuration,
): { files: ConfigurationFile[]; keys: AgentKey[]; hosts: string[] } {
  const reader = addressReaders.get(name);
  const keys: AgentKey[] = [];
  const hosts: string[] = [];
  const changed = files.map((file) => {
    if (reader === undefined || !reader.files.includes(file.path)) return file;
    const found = reader.read(file.text, known);
    keys.push(...found.keys);
    hosts.push(...found.hosts);
    return found.text === file.text ? file : { ...file, text: found.text, isUnchanged: false };
  });
  return { files: changed, keys, hosts };
}

/** Codex's configuration names the host and the variable; without a variable, there may be a login. */
async function codex(
  configuration: Configuration,
  environment: Environment,
  signal: AbortSignal,
): Promise<PreparedKeys> {
  const file = configuration.files.find(({ path }) => path === CODEX_CONFIG);
  const provider = readCodexProvider(file?.text ?? "");
  const files = configuration.files.map((one) =>
    one === file && provider.configuration !== one.text
      ? { ...one, text: provider.configuration, isUnchanged: false }
      : one,
  );
  const common = { wanted: provider.keys, hosts: provider.hosts, configuration: { ...configuration, files } };
  const [set] = provider.keys.flatMap((key) => heldKey(key, environment) ?? []);
  if (!provider.needsLogin) return { ...common, keys: set === undefined ? [] : [set] };
  const byKey = (key: HeldKey): PreparedKeys => {
    return { ...common, keys: [key], login: { kind: "key", path: CODEX_LOGIN, key: key.variable } };
  };
  if (set !== undefined) return byKey(set);
  const found = await findCodexLogin(environment, signal);
  const [wanted] = provider.keys;
  if (found?.kind === "key" && wanted !== undefined)
    return byKey({ ...wanted, variable: "OPENAI_API_KEY", value: found.key });
  if (found?.kind === "chatgpt") return { ...common, ...withChatGpt(found.login, provider) };
  const notes = found?.kind === "expired" ? ["Codex's own login with ChatGPT has expired"] : [];
  return { ...common, keys: [], notes };
}

/** The variables with the placeholders of a login with ChatGPT. */
export const CHATGPT_TOKEN = "CHATGPT_ACCESS_TOKEN";
export const CHATGPT_ACCOUNT = "CHATGPT_ACCOUNT_ID";

/** The token is good for much more of ChatGPT than Codex's model, so it is sent to that alone. */
function withChatGpt(
  login: ChatGptLogin,
  { chatGptUrl }: CodexProvider,
): Pick<PreparedKeys, "keys" | "hosts" | "rules" | "login" | "notes"> {
  const hosts = hostOf(chatGptUrl);
  const common = { hosts, isPlainHttp: isPlainHttp(chatGptUrl) };
  const { accessToken, accountId } = login.tokens;
  const below = URL.canParse(chatGptUrl) ? new URL(chatGptUrl).pathname.replace(/\/$/, "") : "";
  return {
    keys: [
      { ...common, variable: CHATGPT_TOKEN, value: accessToken, headers: ["authorization"] },
      { ...common, variable: CHATGPT_ACCOUNT, value: accountId, headers: ["chatgpt-account-id"] },
    ],
    hosts,
    rules: hosts.map((host) => ({ host, path: `${below}/**` })),
    login: { kind: "chatgpt", path: CODEX_LOGIN, login },
    notes: [login.owner],
  };
}

const MIN_SECRET_CHARS = 8;

function isSecretVariable(name: string, { keys }: KnownAgent): boolean {
  return keys.some(({ variable }) => variable === name) || /(?:KEY|TOKEN|SECRET|PASSWORD)$/i.test(name);
}

function locate(
  path: string,
  { directoryVariable = "", homeVariable = "" }: KnownAgent,
  { home, variables }: Environment,
): string {
  const absolute = (variable: string) => {
    const value = variables[variable];
    return value?.startsWith("/") === true ? value : undefined;
  };
  const directory = absolute(directoryVariable);
  const inside = path.indexOf("/");
  if (directory !== undefined && inside >= 0) return join(directory, path.slice(inside + 1));
  return join(absolute(homeVariable) ?? home, path);
}

function heldKey(key: AgentKey, { variables }: Environment): HeldKey | null {
  const value = variables[key.variable];
  return value === undefined ? null : { ...key, value };
}

function missingSecret({ variable }: AgentKey): never {
  throw invalidUsage(
    `--secret names ${variable}, which is not set`,
    `set it in the environment of brig: the sandbox gets a placeholder, not its value`,
  );
}

/** A sentence for the user, without a full stop. */
export function missingKey(agent: KnownAgent | null, variables: readonly string[]): string {
  const name = agent?.name ?? "the agent";
  const login = name === "codex" ? ", and there is no login with ChatGPT" : "";
  return `no key is set for ${name} (${variables.join(", ")})${login}`;
}

function setVariables(names: readonly string[], { variables }: Environment): Record<string, string> {
  const set = names.map((name) => [name, variables[name]]).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set);
}
