import { BrigError, isBrigError } from "../../../errors.js";
import type { Credentials } from "../provider.js";
import { type AuthFile, changeAuthFile } from "./auth-file.js";
import { type IssuerSettings, requireIssuer } from "./issuer/issuer-settings.js";
import { expiryOfTokens, isSamePerson } from "./issuer/tokens.js";
import { type ChatGptFile, chatGptFile } from "./login-kind.js";

/** How long before its expiry a token is renewed, but never before four fifths of its lifetime. */
const renewalMarginMs = 60_000;
/** A refusal this soon after a renewal belongs to a request that was still sent with the old token. */
const sameRefusalMs = 5_000;

export interface ChatGptLogin {
  home: string;
  settings: IssuerSettings;
  stored: ChatGptFile;
  /** Default: the system's clock. */
  now?: () => Date;
}

/**
 * Credentials of a ChatGPT login, renewed before they expire and after a refusal, by one process at a time:
 * an issuer that replaces refresh tokens takes a second use of an old one for theft and ends the login.
 */
export class ChatGptCredentials implements Credentials {
  readonly #home: string;
  readonly #settings: IssuerSettings;
  readonly #now: () => Date;
  #stored: ChatGptFile;
  #renewals: Promise<void> = Promise.resolve();
  #renewedAt: Date | null = null;
  #refusal: { refreshToken: string; error: BrigError } | null = null;

  /** Error: `model.auth` for a login from another issuer: it must not get the refresh token. */
  constructor({ home, settings, stored, now = () => new Date() }: ChatGptLogin) {
    requireIssuer(stored.tokens.id_token, settings);
    this.#home = home;
    this.#settings = settings;
    this.#stored = stored;
    this.#now = now;
  }

  async headers(signal: AbortSignal): Promise<Record<string, string>> {
    if (this.#isDue()) await this.#renewInTime(signal);
    const { access_token, account_id } = this.#stored.tokens;
    return {
      authorization: `Bearer ${access_token}`,
      ...(account_id == null ? {} : { "chatgpt-account-id": account_id }),
    };
  }

  async renew(signal: AbortSignal): Promise<boolean> {
    const sinceMs = this.#now().getTime() - (this.#renewedAt?.getTime() ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < sameRefusalMs) return true;
    const refused = this.#stored.tokens.access_token;
    await this.#renewUnless(() => this.#stored.tokens.access_token !== refused, signal);
    return true;
  }

  /** An issuer that cannot be reached is not an error while the token is still valid. */
  async #renewInTime(signal: AbortSignal): Promise<void> {
    try {
      await this.#renewUnless(() => !this.#isDue(), signal);
    } catch (error) {
      const isPassing = isBrigError(error, "model.unreachable") || isBrigError(error, "model.failed");
      if (!isPassing || this.#isExpired()) throw error;
    }
  }

  /** One renewal at a time in this process: the second one finds that the first has done it. */
  async #renewUnless(isDone: () => boolean, signal: AbortSignal): Promise<void> {
    const own = this.#renewals.then(() => this.#renewStored(isDone, signal));
    this.#renewals = own.catch(() => undefined);
    await own;
  }

  /** Only the wait for the lock can be aborted: an aborted renewal could lose the new refresh token. */
  async #renewStored(isDone: () => boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await changeAuthFile(
      this.#home,
      async (read) => {
        this.#adopt(await read());
        if (isDone()) return undefined;
        this.#stored = await this.#refreshed();
        this.#renewedAt = this.#now();
        return this.#stored;
      },
      { signal },
    );
  }

  /** Uses the tokens that another process has stored meanwhile, if they belong to the same person. */
  #adopt(file: AuthFile | null): void {
    const login = file === null ? null : chatGptFile(file);
    if (login === null) throw loginEnded("it is no longer stored");
    if (!isSamePerson(login.tokens.id_token, this.#stored.tokens.id_token))
      throw loginEnded("somebody else has logged in meanwhile");
    this.#stored = login;
  }

  async #refreshed(): Promise<ChatGptFile> {
    const { refresh_token } = this.#stored.tokens;
    if (this.#refusal?.refreshToken === refresh_token) throw this.#refusal.error;
    try {
      // Loaded only here: most runs end before their token expires and never need an OAuth client.
      const { refreshTokens } = await import("./issuer/refresh-tokens.js");
      const now = this.#now();
      const tokens = await refreshTokens(this.#stored.tokens, { settings: this.#settings, now });
      return { ...this.#stored, tokens, last_refresh: now.toISOString() };
    } catch (error) {
      if (isBrigError(error, "model.auth")) this.#refusal = { refreshToken: refresh_token, error };
      throw error;
    }
  }

  #isDue(): boolean {
    const expiry = this.#expiryMs();
    const begin = Date.parse(this.#stored.last_refresh ?? "");
    const lifetimeMs = Number.isNaN(begin) ? Number.POSITIVE_INFINITY : Math.max(0, expiry - begin);
    return this.#now().getTime() >= expiry - Math.min(renewalMarginMs, lifetimeMs / 5);
  }

  #isExpired(): boolean {
    return this.#now().getTime() >= this.#expiryMs();
  }

  /** A token with an unknown lifetime is used until it is refused. */
  #expiryMs(): number {
    const expiry = expiryOfTokens(this.#stored.tokens, this.#stored.last_refresh);
    return expiry?.getTime() ?? Number.POSITIVE_INFINITY;
  }
}

function loginEnded(why: string): BrigError {
  return new BrigError(`the ChatGPT login of this run has ended: ${why}`, {
    code: "model.auth",
    hint: "log in again: brig login",
  });
}
