import { BrigError } from "../../../errors.js";
import { type AuthFile, changeAuthFile, type StoredTokens } from "./auth-file.js";

const maxKeyLength = 10_000;

/** Error: `usage.invalid` unless the trimmed text is one line of printable ASCII. */
export function parseApiKey(text: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= maxKeyLength) return key;
  throw new BrigError(key === "" ? "there is no API key on standard input" : "that is not an API key", {
    code: "usage.invalid",
    hint: "for example: printenv OPENAI_API_KEY | brig login --api-key",
  });
}

/** Replaces any stored login. */
export async function storeApiKey(
  home: string,
  key: string,
  options: { signal?: AbortSignal } = {},
): Promise<void> {
  const file: AuthFile = { auth_mode: "apikey", OPENAI_API_KEY: key, tokens: null };
  await changeAuthFile(home, async () => file, options);
}

/** Replaces any stored login. */
export async function storeTokens(
  home: string,
  tokens: StoredTokens,
  options: { signal?: AbortSignal } = {},
): Promise<void> {
  const last_refresh = new Date().toISOString();
  const file: AuthFile = { auth_mode: "chatgpt", OPENAI_API_KEY: null, tokens, last_refresh };
  await changeAuthFile(home, async () => file, options);
}
