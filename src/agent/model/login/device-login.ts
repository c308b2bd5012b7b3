import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } from "openid-client";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { StoredTokens } from "./auth-file.js";
import type { DeviceCode } from "./issuer/device-code.js";
import { connectIssuer, loginScope } from "./issuer/issuer.js";
import { type IssuerSettings, isOpenai } from "./issuer/issuer-settings.js";
import { issuerFailure } from "./issuer/login-failure.js";
import { openaiCodeTokens } from "./issuer/openai-device-code.js";
import { tokensOf } from "./issuer/tokens.js";

export interface DeviceLoginOptions {
  settings: IssuerSettings;
  show: (code: DeviceCode) => Promise<void>;
  timeoutMs: number;
  signal: AbortSignal;
}

/** Asks an issuer for a code, shows it, and waits for the tokens. */
export type CodeFlow = (options: Omit<DeviceLoginOptions, "timeoutMs">) => Promise<StoredTokens>;

/**
 * Logs in a person who has no browser on this machine. Errors: `model.auth` if the issuer refuses or nobody
 * enters the code in time, `config.invalid` if the issuer does not support device codes.
 */
export async function logInWithCode(
  options: DeviceLoginOptions,
  flow: CodeFlow = isOpenai(options.settings) ? openaiCodeTokens : standardCodeTokens,
): Promise<StoredTokens> {
  const { settings, show, timeoutMs } = options;
  using limit = new TimeLimit(timeoutMs, options.signal);
  try {
    // openid-client looks at the signal only between two requests.
    const { signal } = limit;
    return await beforeAbort(flow({ settings, show, signal }), signal);
  } catch (error) {
    options.signal.throwIfAborted();
    if (limit.isOver) throw timedOut(timeoutMs);
    throw issuerFailure(error, { doing: "log in", issuer: settings.issuer });
  }
}

const issuedSchema = z.looseObject({
  verification_uri: z.url({ protocol: /^https?$/ }).max(2000),
  user_code: z.string().min(1).max(100),
});

/** RFC 8628. */
const standardCodeTokens: CodeFlow = async ({ settings, show, signal }) => {
  const configuration = await connectIssuer(settings, { signal });
  if (configuration.serverMetadata().device_authorization_endpoint === undefined)
    throw new BrigError(`${settings.issuer} does not support logging in with a device code`, {
      code: "config.invalid",
      hint: "log in without --device-auth",
    });
  const issued = await initiateDeviceAuthorization(configuration, { scope: loginScope });
  const shown = issuedSchema.safeParse(issued);
  if (!shown.success) throw new BrigError("the issuer sent an invalid device code", { code: "model.failed" });
  await show({ url: shown.data.verification_uri, code: shown.data.user_code });
  const answer = await pollDeviceAuthorizationGrant(configuration, issued, undefined, { signal });
  return tokensOf(answer, { now: new Date() });
};

function timedOut(timeoutMs: number): BrigError {
  return new BrigError(`nobody entered the code within ${Math.round(timeoutMs / 1000)} seconds`, {
    code: "model.auth",
    hint: "try again: brig login --device-auth",
  });
}
