import { authorizationCodeGrant } from "openid-client";
import { z } from "zod";
import { BrigError } from "../../../../errors.js";
import { parseJson } from "../../../../lib/json/parse-json.js";
import { pause } from "../../../../lib/time/pause.js";
import { TimeLimit } from "../../../../lib/time/time-limit.js";
import type { StoredTokens } from "../auth-file.js";
import { boundedFetch } from "./bounded-fetch.js";
import type { DeviceCode } from "./device-code.js";
import { connectIssuer } from "./issuer.js";
import type { IssuerSettings } from "./issuer-settings.js";
import { tokensOf } from "./tokens.js";

const REQUEST_LIMIT_MS = 30_000;

const text = z.string().min(1).max(1000);

const issuedSchema = z
  .looseObject({
    device_auth_id: text,
    user_code: text.optional(),
    usercode: text.optional(),
    /** Seconds, sent as a string. */
    interval: z.coerce.number().min(0).max(60).default(5),
  })
  .transform(({ user_code, usercode, ...issued }) => ({ ...issued, code: user_code ?? usercode }))
  .pipe(z.looseObject({ device_auth_id: text, interval: z.number(), code: text }));

const enteredSchema = z.looseObject({ authorization_code: text, code_verifier: text });

const pendingStatuses = [403, 404];

interface CodeLogin {
  settings: IssuerSettings;
  show: (code: DeviceCode) => Promise<void>;
  signal: AbortSignal;
}

/**
 * OpenAI's login with a device code. Unlike in RFC 8628 the issuer finally sends an authorization code and
 * its PKCE verifier (openai/codex, codex-rs/login/src/device_code_auth.rs).
 */
export async function openaiCodeTokens({ settings, show, signal }: CodeLogin): Promise<StoredTokens> {
  const issuer = settings.issuer.replace(/\/$/, "");
  const api = `${issuer}/api/accounts/deviceauth`;
  const asked = await post(`${api}/usercode`, { client_id: settings.clientId }, { signal, settings });
  if (asked.status !== 200) throw refused(asked.status);
  const { device_auth_id, code: user_code, interval } = parsed(issuedSchema, asked.body);
  await show({ url: `${issuer}/codex/device`, code: user_code });
  for (;;) {
    const answer = await post(`${api}/token`, { device_auth_id, user_code }, { signal, settings });
    if (answer.status === 200)
      return await redeem(parsed(enteredSchema, answer.body), { settings, issuer, signal });
    if (!pendingStatuses.includes(answer.status)) throw refused(answer.status);
    await pause(Math.max(interval * 1000, 100), signal);
  }
}

async function redeem(
  { authorization_code, code_verifier }: z.infer<typeof enteredSchema>,
  { settings, issuer, signal }: { settings: IssuerSettings; issuer: string; signal: AbortSignal },
): Promise<StoredTokens> {
  const configuration = await connectIssuer(settings, { signal });
  const callback = new URL(`${issuer}/deviceauth/callback`);
  callback.searchParams.set("code", authorization_code);
  // No browser brings an `iss` here to be checked: the code came in the issuer's answer to our own request.
  callback.searchParams.set("iss", configuration.serverMetadata().issuer);
  const answer = await authorizationCodeGrant(configuration, callback, {
    pkceCodeVerifier: code_verifier,
    idTokenExpected: true,
  });
  return tokensOf(answer, { now: new Date() });
}

async function post(
  url: string,
  body: Record<string, string>,
  { signal, settings: { proxies } }: Pick<CodeLogin, "signal" | "settings">,
): Promise<{ status: number; body: string }> {
  using limit = new TimeLimit(REQUEST_LIMIT_MS, signal);
  const response = await boundedFetch(limit.signal, proxies)(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    redirect: "manual",
  });
  return { status: response.status, body: await response.text() };
}

function parsed<T>(schema: z.ZodType<T>, body: string): T {
  const result = schema.safeParse(parseJson(body));
  if (result.success) return result.data;
  throw new BrigError("the issuer sent an invalid device code", { code: "model.failed" });
}

function refused(status: number): BrigError {
  return new BrigError(`the issuer refuses a device code: status ${status}`, {
    code: status >= 500 || status === 429 ? "model.unreachable" : "model.auth",
    hint: "device codes may be disabled for your account; log in without --device-auth",
  });
}
