import { anything, nullish, object, readOrNull, record, string } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { withoutComments } from "../../../lib/json/without-comments.js";
import type { AgentKey } from "./known-agents.js";
import { hostOf, isPlainHttp, seenFromInside } from "./model-address.js";

/** The addresses of an agent's models in a configuration file. */
interface ConfiguredAddress {
  /** The keys whose addresses are in the file, with the hosts of these addresses. */
  keys: readonly AgentKey[];
  hosts: readonly string[];
  /** The file as it has to be in the sandbox. */
  text: string;
}

/** The files of each agent that may contain such addresses, relative to the home directory, and their reader. */
export const addressReaders: ReadonlyMap<
  string,
  { files: readonly string[]; read: (text: string, known: readonly AgentKey[]) => ConfiguredAddress }
> = new Map([
  ["claude", { files: [".claude/settings.json"], read: readClaudeSettings }],
  [
    "opencode",
    {
      files: ["config.json", "opencode.json", "opencode.jsonc"].map((name) => `.config/opencode/${name}`),
      read: readOpencodeProviders,
    },
  ],
]);

const settings = object({ env: nullish(record(anything)) });

/** Claude Code's settings.json has variables for the agent itself, which replace those of its environment. */
function readClaudeSettings(text: string, known: readonly AgentKey[]): ConfiguredAddress {
  const parsed = parseJson(text);
  const variables = readOrNull(settings, parsed)?.env ?? {};
  const keys: AgentKey[] = [];
  const moved: Record<string, string> = {};
  for (const key of known) {
    const { addressVariable = "" } = key;
    const address = variables[addressVariable];
    if (typeof address !== "string") continue;
    const { url, isMoved } = seenFromInside(address);
    keys.push({ ...key, hosts: hostOf(url), isPlainHttp: isPlainHttp(url) });
    if (isMoved) moved[addressVariable] = url;
  }
  const isMoved = Object.keys(moved).length > 0;
  return {
    keys,
    hosts: keys.flatMap(({ hosts }) => hosts),
    text: isMoved ? written({ ...(parsed as object), env: { ...variables, ...moved } }) : text,
  };
}

const providers = object({ provider: nullish(record(anything)) });
const provider = object({ options: object({ baseURL: string, apiKey: anything }) });
const KEY_VARIABLE = /^\{env:([A-Za-z_][A-Za-z0-9_]{0,200})\}$/;

/** The providers of models that opencode knows, and the variables of their keys. */
const PROVIDER_VARIABLES: ReadonlyMap<string, readonly string[]> = new Map([
  ["anthropic", ["ANTHROPIC_API_KEY"]],
  ["openai", ["OPENAI_API_KEY"]],
  ["google", ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]],
  ["openrouter", ["OPENROUTER_API_KEY"]],
  ["deepseek", ["DEEPSEEK_API_KEY"]],
  ["groq", ["GROQ_API_KEY"]],
  ["mistral", ["MISTRAL_API_KEY"]],
]);

/** The addresses of providers in opencode's configuration. */
function readOpencodeProviders(text: string): ConfiguredAddress {
  const parsed = parseJson(withoutComments(text));
  const all = readOrNull(providers, parsed)?.provider ?? {};
  const keys: AgentKey[] = [];
  const hosts: string[] = [];
  const moved: Record<string, object> = {};
  for (const [id, one] of Object.entries(all)) {
    const options = readOrNull(provider, one)?.options;
    if (options === undefined) continue;
    const { url, isMoved } = seenFromInside(options.baseURL);
    hosts.push(...hostOf(url));
    const named = typeof options.apiKey === "string" ? KEY_VARIABLE.exec(options.apiKey)?.[1] : undefined;
    const variables = named === undefined ? (PROVIDER_VARIABLES.get(id) ?? []) : [named];
    keys.push(
      ...variables.map((variable) => ({ variable, hosts: hostOf(url), isPlainHttp: isPlainHttp(url) })),
    );
    const raw = one as { options: object };
    if (isMoved) moved[id] = { ...raw, options: { ...raw.options, baseURL: url } };
  }
  const isMoved = Object.keys(moved).length > 0;
  return {
    keys,
    hosts,
    text: isMoved ? written({ ...(parsed as object), provider: { ...all, ...moved } }) : text,
  };
}

function written(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
