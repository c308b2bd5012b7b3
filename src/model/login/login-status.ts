import { authFilePath, readAuthFile } from "./auth-file.js";
import { identityOf } from "./issuer/id-token.js";
import { expiryOfTokens } from "./issuer/tokens.js";
import { type LoginKind, loginKind } from "./login-kind.js";

/** What can be told of a login without telling a secret. */
export interface LoginStatus {
  /** What requests to OpenAI are made with; null where nobody has logged in. */
  kind: LoginKind | null;
  source: "environment" | "auth.json" | null;
  file: string;
  /** What is in the file, also where the environment comes before it. */
  stored: StoredStatus | null;
}

export interface StoredStatus {
  kind: LoginKind;
  email: string | null;
  accountId: string | null;
  plan: string | null;
  issuer: string | null;
  /** Of the access token, which brig renews by itself. ISO 8601. */
  expiresAt: string | null;
  lastRefresh: string | null;
}

/** `OPENAI_API_KEY` in the environment comes before the file. */
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
  const nothing = {
    email: null,
    accountId: null,
    plan: null,
    issuer: null,
    expiresAt: null,
    lastRefresh: null,
  };
  if (kind === "api-key" || file.tokens == null) return { kind, ...nothing };
  const { email, plan, issuer, accountId } = identityOf(file.tokens.id_token);
  return {
    kind,
    email,
    accountId: file.tokens.account_id ?? accountId,
    plan,
    issuer,
    expiresAt: expiryOfTokens(file.tokens, file.last_refresh)?.toISOString() ?? null,
    lastRefresh: file.last_refresh ?? null,
  };
}
