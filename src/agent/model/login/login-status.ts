import { authFilePath, readAuthFile } from "./auth-file.js";
import { identityOf } from "./issuer/id-token.js";
import { expiryOfTokens } from "./issuer/tokens.js";
import { chatGptFile, type LoginKind, loginKind } from "./login-kind.js";

/** What can be shown of a login. It contains no secrets. */
export interface LoginStatus {
  /** What requests to OpenAI use; null if nobody has logged in. */
  kind: LoginKind | null;
  source: "environment" | "auth.json" | null;
  file: string;
  /** The login in the file, even if a key in the environment takes precedence. */
  stored: StoredStatus | null;
}

export interface StoredStatus {
  kind: LoginKind;
  email: string | null;
  accountId: string | null;
  plan: string | null;
  issuer: string | null;
  /** When the access token expires. ISO 8601. */
  expiresAt: string | null;
  lastRefresh: string | null;
}

/** `OPENAI_API_KEY` in the environment takes precedence over the file. */
export async function loginStatus(
  home: string,
  { openaiApiKey }: { openaiApiKey: string | undefined },
): Promise<LoginStatus> {
  const stored = await storedStatus(home);
  const file = authFilePath(home);
  if (openaiApiKey !== undefined) return { kind: "api-key", source: "environment", file, stored };
  return { kind: stored?.kind ?? null, source: stored === null ? null : "auth.json", file, stored };
}

async function storedStatus(home: string): Promise<StoredStatus | null> {
  const file = await readAuthFile(home);
  const kind = file === null ? null : loginKind(file);
  if (file === null || kind === null) return null;
  const login = chatGptFile(file);
  const identity = login === null ? null : identityOf(login.tokens.id_token);
  const expiry = login === null ? null : expiryOfTokens(login.tokens, login.last_refresh);
  return {
    kind,
    email: identity?.email ?? null,
    accountId: login?.tokens.account_id ?? identity?.accountId ?? null,
    plan: identity?.plan ?? null,
    issuer: identity?.issuer ?? null,
    expiresAt: expiry?.toISOString() ?? null,
    lastRefresh: login?.last_refresh ?? null,
  };
}
