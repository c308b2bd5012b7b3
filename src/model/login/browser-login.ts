import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { BrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { StoredTokens } from "./auth-file.js";
import { failedPage, loggedInPage } from "./callback-page.js";
import { type Callback, type CallbackServer, openCallbackServer } from "./callback-server.js";
import { connectIssuer, loginScope } from "./issuer/issuer.js";
import { type IssuerSettings, isOpenai } from "./issuer/issuer-settings.js";
import { issuerFailure } from "./issuer/login-failure.js";
import { tokensOf } from "./issuer/tokens.js";

/** The ports that OpenAI lets Codex's client come back to. */
const registeredPorts = [1455, 1457];

export interface BrowserLoginOptions {
  settings: IssuerSettings;
  /** Where the browser comes back to on this machine; 0 is any port. Default 1455, else 1457. */
  port?: number | undefined;
  /** Shows a person the address to open. */
  show: (url: URL) => Promise<void>;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Logs a person in through a browser: authorization code with PKCE, and a server on the loopback for the browser to come back to. What
 * the issuer or the person refuses is `model.auth`, nobody coming back in time too.
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
  const callback = await comingBack(server, options);
  return await finish(callback, { configuration, settings, secrets, signal });
}

interface LoginSecrets {
  /** Ties the callback to this login. */
  state: string;
  /** Ties the id_token to this login. */
  nonce: string;
  /** Proves that who redeems the code is who asked for it. */
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
    // OpenAI's own: it names the account in the id_token and leaves out what is for its web site. Others hand out a refresh
    // token only if they may ask for consent.
    ...(isOpenai(settings)
      ? { id_token_add_organizations: "true", codex_cli_simplified_flow: "true", originator: "brig" }
      : { prompt: "consent" }),
  });
}

async function comingBack(
  server: CallbackServer,
  { timeoutMs, signal }: BrowserLoginOptions,
): Promise<Callback> {
  using limit = new TimeLimit(timeoutMs, signal);
  try {
    return await beforeAbort(server.callback, limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    throw limit.isOver ? nobodyCame(timeoutMs) : error;
  }
}

interface Exchange {
  configuration: Configuration;
  settings: IssuerSettings;
  secrets: LoginSecrets;
  signal: AbortSignal;
}

/** Redeems the code, and tells the browser how it went. */
async function finish(
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

function nobodyCame(timeoutMs: number): BrigError {
  return new BrigError(`nobody logged in within ${Math.round(timeoutMs / 1000)} seconds`, {
    code: "model.auth",
    hint: "try again; a browser of another machine needs brig login --device-auth",
  });
}
