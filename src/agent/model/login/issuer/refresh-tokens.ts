import { refreshTokenGrant } from "openid-client";
import type { StoredTokens } from "../auth-file.js";
import { connectIssuer } from "./issuer.js";
import type { IssuerSettings } from "./issuer-settings.js";
import { issuerFailure } from "./login-failure.js";
import { tokensOf } from "./tokens.js";

/**
 * Exchanges the tokens for new ones, which may end the old ones. Errors: `model.auth` if the issuer refuses,
 * `model.unreachable` without an answer, `model.failed` for an invalid answer.
 */
export async function refreshTokens(
  before: StoredTokens,
  { settings, now }: { settings: IssuerSettings; now: Date },
): Promise<StoredTokens> {
  try {
    const configuration = await connectIssuer(settings);
    const answer = await refreshTokenGrant(configuration, before.refresh_token);
    return tokensOf(answer, { before, now });
  } catch (error) {
    throw issuerFailure(error, {
      doing: "renew the ChatGPT login",
      issuer: settings.issuer,
      secrets: [before.refresh_token, before.access_token, before.id_token],
    });
  }
}
