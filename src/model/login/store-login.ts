import { BrigError } from "../../errors.js";
import { changeAuthFile, type StoredTokens } from "./auth-file.js";

/** No key is nearly as long. */
const maxKeyLength = 10_000;

/**
 * The key in what somebody typed or piped: without the white space around it. Anything but one line of printable ASCII is
 * `usage.invalid`.
 */
export function parseApiKey(text: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= maxKeyLength) return key;
  throw new BrigError(key === "" ? "there is no API key on standard input" : "that is not an API key", {
    code: "usage.invalid",
    hint: "for example: printenv OPENAI_API_KEY | brig login --api-key",
  });
}

/** Replaces whatever login there was. */
export async function storeApiKey(
  home: string,
  key: string,
  options: { signal?: AbortSignal } = {},
): Promise<void> {
  await changeAuthFile(
    home,
    async () => ({ auth_mode: "apikey", OPENAI_API_KEY: key, tokens: null }),
    options,
  );
}

/** Replaces whatever login there was. */
export async function storeTokens(
  home: string,
  tokens: StoredTokens,
  options: { signal?: AbortSignal } = {},
): Promise<void> {
  const last_refresh = new Date().toISOString();
  await changeAuthFile(
    home,
    async () => ({ auth_mode: "chatgpt", OPENAI_API_KEY: null, tokens, last_refresh }),
    options,
  );
}
