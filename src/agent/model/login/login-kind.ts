import type { AuthFile, StoredTokens } from "./auth-file.js";

export type LoginKind = "api-key" | "chatgpt";

/** An `auth.json` whose ChatGPT login is the one in use. */
export type ChatGptFile = AuthFile & { tokens: StoredTokens };

/** The login that `auth_mode` selects; without it a key precedes tokens, as in Codex. Null: no login. */
export function loginKind({ auth_mode, OPENAI_API_KEY, tokens }: AuthFile): LoginKind | null {
  if (auth_mode === "chatgpt" && tokens != null) return "chatgpt";
  if (OPENAI_API_KEY != null) return "api-key";
  return tokens == null ? null : "chatgpt";
}

export function chatGptFile(file: AuthFile): ChatGptFile | null {
  const { tokens } = file;
  return tokens == null || loginKind(file) !== "chatgpt" ? null : { ...file, tokens };
}
