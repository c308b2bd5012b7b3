import { z } from "zod";
import { BrigError } from "../../../../errors.js";
import { type StoredTokens, tokensSchema } from "../auth-file.js";
import { expiryOf, identityOf } from "./id-token.js";

const maxLifetimeSeconds = 10 * 365 * 24 * 60 * 60;
const assumedLifetimeMs = 8 * 24 * 60 * 60 * 1000;

/** The fields of a token response that openid-client does not check. */
const grantSchema = z.looseObject({
  access_token: tokensSchema.shape.access_token,
  refresh_token: tokensSchema.shape.refresh_token.optional(),
  id_token: tokensSchema.shape.id_token.optional(),
  expires_in: z.number().min(0).max(maxLifetimeSeconds).optional(),
});

/**
 * The tokens of an answer, as they are stored; missing ones are taken from `before`. Error: `model.failed` if
 * one is still missing, or if they belong to another person than before.
 */
export function tokensOf(
  answer: unknown,
  { before, now }: { before?: StoredTokens | undefined; now: Date },
): StoredTokens {
  const parsed = grantSchema.safeParse(answer);
  if (!parsed.success) throw unusableAnswer(z.prettifyError(parsed.error));
  const grant = parsed.data;
  const idToken = grant.id_token ?? before?.id_token;
  const refreshToken = grant.refresh_token ?? before?.refresh_token;
  if (idToken === undefined) throw unusableAnswer("it has no id_token");
  if (refreshToken === undefined) throw unusableAnswer("it has no refresh_token");
  if (before !== undefined && !isSamePerson(idToken, before.id_token))
    throw unusableAnswer("it is about another person");
  const expiry = grant.expires_in === undefined ? null : new Date(now.getTime() + grant.expires_in * 1000);
  return {
    ...before,
    id_token: idToken,
    access_token: grant.access_token,
    refresh_token: refreshToken,
    account_id: identityOf(idToken).accountId ?? before?.account_id ?? null,
    expires_at: expiry?.toISOString() ?? null,
  };
}

export function isSamePerson(idToken: string, other: string): boolean {
  const [one, two] = [identityOf(idToken), identityOf(other)];
  return one.issuer === two.issuer && one.subject === two.subject;
}

/** When the access token expires. If neither issuer nor token says so, eight days after it was issued. */
export function expiryOfTokens(tokens: StoredTokens, lastRefresh: string | null | undefined): Date | null {
  if (tokens.expires_at != null) return new Date(tokens.expires_at);
  const said = expiryOf(tokens.access_token);
  if (said !== null || lastRefresh == null) return said;
  return new Date(Date.parse(lastRefresh) + assumedLifetimeMs);
}

function unusableAnswer(why: string): BrigError {
  return new BrigError(`the issuer's answer cannot be used: ${why}`, { code: "model.failed" });
}
