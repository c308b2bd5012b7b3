import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Configuration, Provider } from "oidc-provider";
import { CookieBrowser } from "./cookie-browser.js";

export const clientId = "brig-test";
export const accountId = "account-0815";
/** Whom the provider logs in, whatever password is given. */
export const person = "ada";

export interface OpenIdProviderOptions {
  /** Default one hour. */
  accessTokenSeconds?: number;
  /** Whether a refresh token is replaced at each use, and a second use ends the login. Default true. */
  rotates?: boolean;
  /** Changes an answer of the provider on its way out. */
  tamper?: (request: { path: string; body: string }) => string;
  /** Path → how long an answer is held back. */
  delayMs?: Record<string, number>;
  /** Path → the status and body of every answer. */
  answers?: Record<string, { status: number; body: object | string }>;
  /** Path → where a request is sent on to, in place of an answer. */
  redirects?: Record<string, string>;
  /** More of the provider's own settings. */
  configuration?: Configuration;
}

/** A real OpenID provider on the loopback, and how often each of its endpoints was asked. */
export interface OpenIdProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly provider: Provider;
  readonly server: Server;
  /** `POST /token` → how many. */
  readonly requests: Map<string, number>;
  /** Logs the person in as a browser would, and consents; follows every redirect, the last one to brig itself. */
  logIn(url: string): Promise<Response>;
  /** The same, but the person says no. */
  refuse(url: string): Promise<Response>;
}

export async function openIdProvider(options: OpenIdProviderOptions = {}): Promise<OpenIdProvider> {
  const requests = new Map<string, number>();
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, settings(options));
  const { tamper, delayMs = {}, redirects = {}, answers = {} } = options;
  provider.use(async (context, next) => {
    const key = `${context.method} ${context.path}`;
    requests.set(key, (requests.get(key) ?? 0) + 1);
    await next();
    await sleep(delayMs[context.path] ?? 0);
    const elsewhere = redirects[context.path];
    if (elsewhere !== undefined) return context.redirect(elsewhere);
    const answer = answers[context.path];
    if (answer !== undefined) return Object.assign(context, answer);
    if (tamper === undefined || typeof context.body !== "object") return;
    context.body = tamper({ path: context.path, body: JSON.stringify(context.body) });
    context.type = "json";
  });
  server.on("request", provider.callback());
  return {
    issuer,
    provider,
    server,
    requests,
    logIn: (url) => new CookieBrowser().logIn(url),
    refuse: (url) => new CookieBrowser().refuse(url),
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, "close");
    },
  };
}

function settings({
  accessTokenSeconds = 3600,
  rotates = true,
  configuration,
}: OpenIdProviderOptions): Configuration {
  return {
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: "none",
        application_type: "native",
        redirect_uris: ["http://localhost/auth/callback", "http://127.0.0.1/deviceauth/callback"],
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        response_types: ["code"],
      },
    ],
    claims: {
      openid: ["sub", "https://api.openai.com/auth"],
      email: ["email"],
      profile: ["name"],
    },
    conformIdTokenClaims: false,
    findAccount: (_context, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id,
        email: `${id}@example.test`,
        "https://api.openai.com/auth": { chatgpt_account_id: accountId, chatgpt_plan_type: "plus" },
      }),
    }),
    scopes: ["openid", "offline_access", "email", "profile"],
    pkce: { required: () => true },
    rotateRefreshToken: rotates,
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true, allowedPolicy: async () => true },
    },
    ttl: {
      AccessToken: accessTokenSeconds,
      RefreshToken: 86_400,
      IdToken: 3600,
      Grant: 86_400,
      Session: 3600,
    },
    cookies: { keys: ["a key for tests"] },
    ...configuration,
  };
}
