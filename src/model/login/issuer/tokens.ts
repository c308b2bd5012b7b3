import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { type StoredTokens, tokensSchema } from "../auth-file.js";
import { expiryOf, identityOf } from "./id-token.js";

const maxLifetimeSeconds = 10 * 365 * 24 * 60 * 60;
/** Of a token that does not say when it expires. */
const assumedLifetimeMs = 8 * 24 * 60 * 60 * 1000;

/** What an issuer hands out, beyond what the library has checked. */
const grantSchema = z.looseObject({
  access_token: tokensSchema.shape.access_token,
  refresh_token: tokensSchema.shape.refresh_token.optional(),
  id_token: tokensSchema.shape.id_token.optional(),
  expires_in: z.number().min(0).max(maxLifetimeSeconds).optional(),
});

/**
 * The tokens of an answer, as they are kept. What the answer leaves out is taken from `before`. An answer that lacks what a first login
 * needs, or speaks of somebody else than before, is `model.failed`.
 */
export function tokensOf(
  answer: unknown,
  { before, now }: { before?: StoredTokens | undefined; now: Date },
): StoredTokens {
  const parsed = grantSchema.safeParse(answer);
  if (!parsed.success) throw useless(z.prettifyError(parsed.error));
  const grant = parsed.data;
  const idToken = grant.id_token ?? before?.id_token;
  const refreshToken = grant.refresh_token ?? before?.refresh_token;
  if (idToken === undefined) throw useless("it has no id_token");
  if (refreshToken === undefined) throw useless("it has no refresh_token");
  if (before !== undefined && !isSamePerson(idToken, before.id_token))
    throw useless("it speaks of somebody else");
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

/** When the access token stops to hold: as the issuer said, as the token says, else eight days after it came. */
export function expiryOfTokens(tokens: StoredTokens, lastRefresh: string | null | undefined): Date | null {
  if (tokens.expires_at != null) return new Date(tokens.expires_at);
  const said = expiryOf(tokens.access_token);
  if (said !== null || lastRefresh == null) return said;
  return new Date(Date.parse(lastRefresh) + assumedLifetimeMs);
}

function useless(why: string): BrigError {
  return new BrigError(`the issuer's answer is of no use: ${why}`, { code: "model.failed" });
}
