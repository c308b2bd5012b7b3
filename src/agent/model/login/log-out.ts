import { tokenRevocation } from "openid-client";
import { isBrigError } from "../../../errors.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { readAuthFile, removeAuthFile } from "./auth-file.js";
import { connectIssuer } from "./issuer/issuer.js";
import { type IssuerSettings, requireIssuer } from "./issuer/issuer-settings.js";
import { issuerFailure } from "./issuer/login-failure.js";

const REVOCATION_LIMIT_MS = 10_000;

export interface LogoutOutcome {
  wasLoggedIn: boolean;
  /** Why the tokens could not be revoked at the issuer; null if they were or there were none. */
  notRevoked: string | null;
}

/** Revokes the tokens at the issuer, so that copies become worthless, and removes `auth.json` anyway. */
export async function logOut(
  home: string,
  settings: IssuerSettings,
  { signal, revocationLimitMs = REVOCATION_LIMIT_MS }: { signal: AbortSignal; revocationLimitMs?: number },
): Promise<LogoutOutcome> {
  using limit = new TimeLimit(revocationLimitMs, signal);
  const notRevoked = await revoke(home, settings, { signal, limit });
  return { wasLoggedIn: await removeAuthFile(home, { signal }), notRevoked };
}

async function revoke(
  home: string,
  settings: IssuerSettings,
  { signal, limit }: { signal: AbortSignal; limit: TimeLimit },
): Promise<string | null> {
  const secrets: string[] = [];
  try {
    const tokens = (await readAuthFile(home))?.tokens;
    if (tokens == null) return null;
    secrets.push(tokens.refresh_token, tokens.access_token, tokens.id_token);
    requireIssuer(tokens.id_token, settings);
    const configuration = await connectIssuer(settings, { signal: limit.signal });
    if (configuration.serverMetadata().revocation_endpoint === undefined) return null;
    await tokenRevocation(configuration, tokens.refresh_token, { token_type_hint: "refresh_token" });
    return null;
  } catch (error) {
    signal.throwIfAborted();
    if (isBrigError(error)) return error.message;
    return issuerFailure(error, { doing: "end the login", issuer: settings.issuer, secrets }).message;
  }
}
