import type { AuthFile, StoredTokens } from "./auth-file.js";

export type LoginKind = "api-key" | "chatgpt";

/** An `auth.json` with a ChatGPT login in force. */
export type ChatGptFile = AuthFile & { tokens: StoredTokens };

/** What `auth.json` says is in force; where it does not say, a key before tokens, as Codex has it. Null for an empty login. */
export function loginKind({ auth_mode, OPENAI_API_KEY, tokens }: AuthFile): LoginKind | null {
  if (auth_mode === "chatgpt" && tokens != null) return "chatgpt";
  if (OPENAI_API_KEY != null) return "api-key";
  return tokens == null ? null : "chatgpt";
}

export function chatGptFile(file: AuthFile): ChatGptFile | null {
  const { tokens } = file;
  return tokens == null || loginKind(file) !== "chatgpt" ? null : { ...file, tokens };
}
