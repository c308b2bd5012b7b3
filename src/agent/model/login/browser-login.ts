import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { BrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { StoredTokens } from "./auth-file.js";
import { failedPage, loggedInPage } from "./callback-page.js";
import { type Callback, type CallbackServer, openCallbackServer } from "./callback-server.js";
import { connectIssuer, loginScope } from "./issuer/issuer.js";
import { type IssuerSettings, isOpenai } from "./issuer/issuer-settings.js";
import { issuerFailure } from "./issuer/login-failure.js";
import { tokensOf } from "./issuer/tokens.js";

/** The ports that OpenAI accepts in the redirect address of Codex's client. */
const registeredPorts = [1455, 1457];

export interface BrowserLoginOptions {
  settings: IssuerSettings;
  /** The local port that the browser is redirected to; 0 is any free one. Default: 1455, else 1457. */
  port?: number | undefined;
  show: (url: URL) => Promise<void>;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Logs a person in through a browser: authorization code with PKCE, and a server on the loopback interface
 * for the redirect. Error: `model.auth` if the issuer or the person refuses, or nobody logs in in time.
 */
export async function logInWithBrowser(options: BrowserLoginOptions): Promise<StoredTokens> {
  const { settings, port, show, signal } = options;
  const configuration = await connectIssuer(settings, { signal });
  const secrets = {
    state: randomState(),
    nonce: randomNonce(),
    verifier: randomPKCECodeVerifier(),
  };
  await using server = await openCallbackServer({
    ports: port === undefined ? registeredPorts : [port],
    state: secrets.state,
  });
  await show(await authorizationUrl(configuration, { settings, secrets, redirectUri: server.redirectUri }));
  const callback = await waitForCallback(server, options);
  return await redeemCode(callback, { configuration, settings, secrets, signal });
}

interface LoginSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

interface Authorization {
  settings: IssuerSettings;
  secrets: LoginSecrets;
  redirectUri: string;
}

async function authorizationUrl(
  configuration: Configuration,
  { settings, secrets, redirectUri }: Authorization,
): Promise<URL> {
  return buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: loginScope,
    code_challenge: await calculatePKCECodeChallenge(secrets.verifier),
    code_challenge_method: "S256",
    state: secrets.state,
    nonce: secrets.nonce,
    // OpenAI's own parameters: they put the account into the id_token and skip steps that are for its web
    // site. Other issuers grant a refresh token only if they may ask for consent.
    ...(isOpenai(settings)
      ? { id_token_add_organizations: "true", codex_cli_simplified_flow: "true", originator: "brig" }
      : { prompt: "consent" }),
  });
}

async function waitForCallback(
  server: CallbackServer,
  { timeoutMs, signal }: BrowserLoginOptions,
): Promise<Callback> {
  using limit = new TimeLimit(timeoutMs, signal);
  try {
    return await beforeAbort(server.callback, limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    throw limit.isOver ? timedOut(timeoutMs) : error;
  }
}

interface Exchange {
  configuration: Configuration;
  settings: IssuerSettings;
  secrets: LoginSecrets;
  signal: AbortSignal;
}

async function redeemCode(
  callback: Callback,
  { configuration, settings, secrets, signal }: Exchange,
): Promise<StoredTokens> {
  try {
    const answer = await authorizationCodeGrant(configuration, callback.url, {
      expectedState: secrets.state,
      expectedNonce: secrets.nonce,
      pkceCodeVerifier: secrets.verifier,
    });
    const tokens = tokensOf(answer, { now: new Date() });
    await callback.answer(loggedInPage);
    return tokens;
  } catch (error) {
    await callback.answer(failedPage);
    const code = callback.url.searchParams.get("code") ?? "";
    throw issuerFailure(error, {
      doing: "log in",
      issuer: settings.issuer,
      secrets: [...Object.values(secrets), code],
      signal,
    });
  }
}

function timedOut(timeoutMs: number): BrigError {
  return new BrigError(`nobody logged in within ${Math.round(timeoutMs / 1000)} seconds`, {
    code: "model.auth",
    hint: "try again; to use a browser on another machine: brig login --device-auth",
  });
}
