import { join } from "node:path";
import { invalidUsage } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import type { Environment } from "../../../lib/env.js";
import { nullish, object, readOrNull, string } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import {
  type Configuration,
  type ConfigurationFile,
  collectConfiguration,
} from "../configuration/collect-files.js";
import type { ConfigAccess } from "../wrap-flags.js";
import { readCodexProvider } from "./codex-provider.js";
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
  /** The file of a login that the agent needs inside, and the variable whose placeholder it contains. */
  login: { path: string; key: string } | null;
  /** The variables of keys that the agent could use. Empty if it has a key. */
  missing: readonly string[];
  /** Notes for the user, as sentences without a full stop. */
  notes: readonly string[];
}

export interface AgentRequest {
  argv: readonly string[];
  agent: string | undefined;
  secrets: readonly AgentKey[];
  access: ConfigAccess;
  /** The variables of `--env`, which the agent gets as they are. A key among them gets no placeholder. */
  shown: Readonly<Record<string, string>>;
}

const CODEX_CONFIG = ".codex/config.toml";
const CODEX_LOGIN = ".codex/auth.json";
const MAX_LOGIN_BYTES = 64 * 1024;

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
      ? await codex(configuration, environment)
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
    login: prepared.login ?? null,
    notes: [
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
  login?: PreparedAgent["login"];
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

/** Codex's configuration names the host and the variable; without a variable, its login may have a key. */
async function codex(configuration: Configuration, environment: Environment): Promise<PreparedKeys> {
  const file = configuration.files.find(({ path }) => path === CODEX_CONFIG);
  const provider = readCodexProvider(file?.text ?? "");
  const keys = provider.keys.map((key) => heldKey(key, environment)).filter((key) => key !== null);
  const ofLogin = keys.length === 0 && provider.needsLogin ? await keyOfLogin(environment) : null;
  const [wanted] = provider.keys;
  if (ofLogin !== null && wanted !== undefined)
    keys.push({ ...wanted, variable: "OPENAI_API_KEY", value: ofLogin });
  const files = configuration.files.map((one) =>
    one === file && provider.configuration !== one.text
      ? { ...one, text: provider.configuration, isUnchanged: false }
      : one,
  );
  const [first] = keys;
  return {
    wanted: provider.keys,
    keys: keys.slice(0, 1),
    hosts: provider.hosts,
    configuration: { ...configuration, files },
    login: provider.needsLogin && first !== undefined ? { path: CODEX_LOGIN, key: first.variable } : null,
  };
}

/** Null if Codex is not logged in with a key. */
async function keyOfLogin({ codexHome }: Environment): Promise<string | null> {
  const file = await readTextFile(join(codexHome, "auth.json"), MAX_LOGIN_BYTES);
  const login = file.kind === "text" ? parseJson(file.text) : null;
  return readOrNull(object({ OPENAI_API_KEY: nullish(string) }), login)?.OPENAI_API_KEY ?? null;
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
  const login = name === "codex" ? "; a login with ChatGPT is not taken into the sandbox" : "";
  return `no key is set for ${name} (${variables.join(", ")})${login}`;
}

function setVariables(names: readonly string[], { variables }: Environment): Record<string, string> {
  const set = names.map((name) => [name, variables[name]]).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set);
}
