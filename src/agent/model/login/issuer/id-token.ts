import { z } from "zod";
import { parseJson } from "../../../../lib/json/parse-json.js";

const text = z.string().max(1000).nullish().catch(null);

const claimsSchema = z.looseObject({
  iss: text,
  sub: text,
  email: text,
  "https://api.openai.com/auth": z
    .looseObject({ chatgpt_account_id: text, chatgpt_plan_type: text })
    .nullish()
    .catch(null),
  "https://api.openai.com/profile": z.looseObject({ email: text }).nullish().catch(null),
});

/** The person that an id_token identifies. Claims that it lacks are null. */
export interface Identity {
  issuer: string | null;
  subject: string | null;
  email: string | null;
  plan: string | null;
  /** The ChatGPT account, which requests name in a header of its own. */
  accountId: string | null;
}

/** Does not verify the id_token: that was done when it arrived. All claims are null if it is not a JWT. */
export function identityOf(idToken: string): Identity {
  const parsed = claimsSchema.safeParse(payloadOf(idToken));
  const claims = parsed.success ? parsed.data : {};
  const account = claims["https://api.openai.com/auth"];
  return {
    issuer: claims.iss ?? null,
    subject: claims.sub ?? null,
    email: claims.email ?? claims["https://api.openai.com/profile"]?.email ?? null,
    plan: account?.chatgpt_plan_type ?? null,
    accountId: account?.chatgpt_account_id ?? null,
  };
}

/** When a JWT expires; null for a token that is not a JWT or names no expiry. */
export function expiryOf(token: string): Date | null {
  const parsed = z.looseObject({ exp: z.number().min(0).max(1e11) }).safeParse(payloadOf(token));
  return parsed.success ? new Date(parsed.data.exp * 1000) : null;
}

function payloadOf(jwt: string): unknown {
  const [, payload = ""] = jwt.split(".");
  return parseJson(Buffer.from(payload, "base64url").toString("utf8"));
}
