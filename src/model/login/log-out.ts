import { tokenRevocation } from "openid-client";
import { isBrigError } from "../../errors.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { readAuthFile, removeAuthFile } from "./auth-file.js";
import { connectIssuer } from "./issuer/issuer.js";
import { type IssuerSettings, requireIssuer } from "./issuer/issuer-settings.js";
import { issuerFailure } from "./issuer/login-failure.js";

/** Nobody waits longer for an issuer to be told of what they forget. */
const REVOCATION_LIMIT_MS = 10_000;

export interface LogoutOutcome {
  /** False where nobody was logged in. */
  wasLoggedIn: boolean;
  /** Why the issuer was not told, or could not be; null where it was, or need not be. */
  notRevoked: string | null;
}

/**
 * Forgets the login. The issuer is told first, so that a copy of the tokens is of no use to anybody; that it cannot be told does not
 * keep the file.
 */
export async function logOut(
  home: string,
  settings: IssuerSettings,
  { signal }: { signal: AbortSignal },
): Promise<LogoutOutcome> {
  const notRevoked = await revoke(home, settings, signal);
  return { wasLoggedIn: await removeAuthFile(home, { signal }), notRevoked };
}

async function revoke(home: string, settings: IssuerSettings, signal: AbortSignal): Promise<string | null> {
  const secrets: string[] = [];
  using limit = new TimeLimit(REVOCATION_LIMIT_MS, signal);
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
