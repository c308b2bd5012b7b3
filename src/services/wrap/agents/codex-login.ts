import { join } from "node:path";
import {
  expiryOf,
  identityOf,
  issuerSettings,
  loadConfig,
  loginStatus,
  openLogin,
} from "../../../agent/index.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import type { Environment } from "../../../lib/env.js";
import { nullish, object, readOrNull, string, stringLike } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { readProxies } from "../../../lib/proxy/proxies.js";

/** What requests of a login with ChatGPT have in their headers. */
export interface ChatGptTokens {
  accessToken: string;
  accountId: string;
}

/** A login with ChatGPT on this machine. */
export interface ChatGptLogin {
  /** Whose login it is, as the beginning of a sentence. */
  owner: string;
  plan: string | null;
  tokens: ChatGptTokens;
  /** The tokens for requests from now on, renewed before they expire where that is brig's to do. */
  current(signal: AbortSignal): Promise<ChatGptTokens>;
}

export type CodexLogin =
  | { kind: "key"; key: string }
  | { kind: "chatgpt"; login: ChatGptLogin }
  /** There is a login that can no longer be used. */
  | { kind: "expired" };

const MAX_LOGIN_BYTES = 1024 * 1024;
/** These values go into headers of requests. */
const headerValue = stringLike(/^[\x21-\x7e]{8,16384}$/);

const loginShape = object({
  auth_mode: nullish(string),
  OPENAI_API_KEY: nullish(headerValue),
  tokens: nullish(object({ access_token: headerValue, id_token: string, account_id: nullish(headerValue) })),
});

/**
 * The login with which Codex works on this machine; null for none. That of `brig login` comes before Codex's own login with ChatGPT: a refresh
 * token works once, and two programs that use the same one end the login, so brig renews none but its own.
 */
export async function findCodexLogin(
  environment: Environment,
  signal: AbortSignal,
): Promise<CodexLogin | null> {
  const codex = await readCodexLogin(environment);
  if (codex?.kind === "key") return codex;
  return (await brigLogin(environment, signal)) ?? codex;
}

async function brigLogin(environment: Environment, signal: AbortSignal): Promise<CodexLogin | null> {
  const { config } = await loadConfig(environment);
  const settings = issuerSettings(config.oauth, readProxies(environment.variables));
  const login = await openLogin(environment.brigHome, settings);
  if (login?.kind !== "chatgpt") return null;
  const current = async (over: AbortSignal): Promise<ChatGptTokens> => {
    const headers = await login.credentials.headers(over);
    return {
      accessToken: (headers.authorization ?? "").replace(/^Bearer /, ""),
      accountId: headers["chatgpt-account-id"] ?? "",
    };
  };
  const tokens = await current(signal);
  if (tokens.accountId === "") return null;
  const { stored } = await loginStatus(environment.brigHome, { openaiApiKey: undefined });
  const owner = "the login with ChatGPT is that of brig login, which brig renews";
  return { kind: "chatgpt", login: { owner, plan: stored?.plan ?? null, tokens, current } };
}

/** Codex's own, which only Codex renews. */
async function readCodexLogin(environment: Pick<Environment, "codexHome">): Promise<CodexLogin | null> {
  const file = await readTextFile(join(environment.codexHome, "auth.json"), MAX_LOGIN_BYTES);
  const stored = file.kind === "text" ? readOrNull(loginShape, parseJson(file.text)) : null;
  if (stored === null) return null;
  const { auth_mode: mode, OPENAI_API_KEY: key, tokens } = stored;
  if (mode !== "chatgpt" && key) return { kind: "key", key };
  if (!tokens) return null;
  const { accountId, plan } = identityOf(tokens.id_token);
  const account = tokens.account_id ?? accountId;
  if (account === null) return null;
  const expiry = expiryOf(tokens.access_token)?.getTime() ?? Number.POSITIVE_INFINITY;
  if (expiry <= Date.now()) return { kind: "expired" };
  const known = { accessToken: tokens.access_token, accountId: account };
  return {
    kind: "chatgpt",
    login: {
      ...{ plan, tokens: known },
      owner:
        "the login with ChatGPT is Codex's own, which brig does not renew; brig login makes one that it does",
      async current() {
        const newer = await readCodexLogin(environment);
        const isSame = newer?.kind === "chatgpt" && newer.login.tokens.accountId === account;
        return isSame ? newer.login.tokens : known;
      },
    },
  };
}

/** The file of a login that Codex takes for one with ChatGPT, in which placeholders stand for the tokens. */
export function placeholderLogin({ accessToken, accountId }: ChatGptTokens, plan: string | null): string {
  const account = { chatgpt_account_id: accountId, chatgpt_plan_type: plan ?? "unknown" };
  const claims = { email: "somebody@example.invalid", "https://api.openai.com/auth": account };
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  // Nobody verifies it: Codex reads of it whose login it is.
  const idToken = `${encoded({ alg: "none", typ: "JWT" })}.${encoded(claims)}.none`;
  return JSON.stringify({
    auth_mode: "chatgpt",
    OPENAI_API_KEY: null,
    tokens: {
      ...{ id_token: idToken, access_token: accessToken, refresh_token: "brig renews it outside" },
      account_id: accountId,
    },
    last_refresh: new Date().toISOString(),
  });
}
