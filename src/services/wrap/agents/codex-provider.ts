import { parse, stringify } from "smol-toml";
import { anything, nullish, object, readOrNull, record, string } from "../../../lib/json/json-shape.js";
import type { AgentKey } from "./known-agents.js";
import { hostOf, isPlainHttp, seenFromInside } from "./model-address.js";

/** The part of Codex's configuration that is about its model. */
export interface CodexProvider {
  keys: readonly AgentKey[];
  hosts: readonly string[];
  /** Whether Codex needs a login inside, because it reads the key from its login and not from a variable. */
  needsLogin: boolean;
  /** Where Codex sends the requests of a login with ChatGPT. */
  chatGptUrl: string;
  /** The configuration as it has to be in the sandbox. */
  configuration: string;
}

const OPENAI = "openai";
const OPENAI_URL = "https://api.openai.com/v1";
const CHATGPT_URL = "https://chatgpt.com/backend-api/codex";
const OPENAI_KEYS = ["CODEX_API_KEY", "OPENAI_API_KEY"];

const provider = object({ base_url: nullish(string), env_key: nullish(string) });
const shape = object({
  model_provider: nullish(string),
  openai_base_url: nullish(string),
  model_providers: nullish(record(anything)),
});

/** Reads config.toml; one that cannot be parsed is passed on as it is, so that Codex itself says what is wrong. */
export function readCodexProvider(configuration: string): CodexProvider {
  const parsed = parsedOrNull(configuration);
  const known = readOrNull(shape, parsed ?? {});
  const id = known?.model_provider ?? OPENAI;
  const own = readOrNull(provider, known?.model_providers?.[id]);
  const url = own?.base_url ?? known?.openai_base_url ?? OPENAI_URL;
  const { url: address, isMoved } = seenFromInside(url);
  const hosts = hostOf(address);
  const variables = own === null ? OPENAI_KEYS : [own.env_key ?? []].flat();
  return {
    keys: variables.map((variable) => ({ variable, hosts, isPlainHttp: isPlainHttp(address) })),
    hosts,
    needsLogin: own === null,
    chatGptUrl: known?.openai_base_url == null ? CHATGPT_URL : address,
    configuration:
      parsed === null ? configuration : inSandbox(parsed, { configuration, id, address, isMoved }),
  };
}

interface Change {
  configuration: string;
  id: string;
  address: string;
  isMoved: boolean;
}

/** Replaces the address of a model on this machine by the sandbox's address for it, and has the login read from a file. */
function inSandbox(parsed: Record<string, unknown>, { configuration, id, address, isMoved }: Change): string {
  const { cli_auth_credentials_store: store, ...rest } = parsed;
  if (store === undefined && !isMoved) return configuration;
  if (!isMoved) return stringify(rest);
  const providers = readOrNull(record(record(anything)), rest.model_providers) ?? {};
  const own = providers[id];
  if (own === undefined) return stringify({ ...rest, openai_base_url: address });
  return stringify({ ...rest, model_providers: { ...providers, [id]: { ...own, base_url: address } } });
}

function parsedOrNull(text: string): Record<string, unknown> | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}
