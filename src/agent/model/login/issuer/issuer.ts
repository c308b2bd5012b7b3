import {
  allowInsecureRequests,
  Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  None,
  type ServerMetadata,
} from "openid-client";
import { BrigError } from "../../../../errors.js";
import { isLoopbackHost } from "../../endpoint/loopback.js";
import { boundedFetch } from "./bounded-fetch.js";
import { type IssuerSettings, isOpenai, openaiIssuer } from "./issuer-settings.js";
import { issuerFailure } from "./login-failure.js";

/** OpenAI's discovery document names other clients' endpoints; these are the ones of Codex's client. */
const openaiEndpoints: ServerMetadata = {
  issuer: openaiIssuer.issuer,
  authorization_endpoint: `${openaiIssuer.issuer}/oauth/authorize`,
  token_endpoint: `${openaiIssuer.issuer}/oauth/token`,
  revocation_endpoint: `${openaiIssuer.issuer}/oauth/revoke`,
  jwks_uri: `${openaiIssuer.issuer}/.well-known/jwks.json`,
};

/** The identity of the person, and a refresh token (`offline_access`). */
export const loginScope = "openid profile email offline_access";

const timeoutSeconds = 30;

/**
 * The issuer's endpoints and checks of its answers. An abort ends requests that use the result. Errors:
 * `config.invalid` for an `http` address of another machine, `model.unreachable` without an answer.
 */
export async function connectIssuer(
  settings: IssuerSettings,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Configuration> {
  const fetch = boundedFetch(signal, settings.proxies);
  const configuration = isOpenai(settings)
    ? openaiConfiguration(settings.clientId, fetch)
    : await discover(settings, fetch, signal);
  // Checked even though id_tokens come straight from the issuer: they decide whose login it is.
  enableNonRepudiationChecks(configuration);
  return configuration;
}

function openaiConfiguration(clientId: string, fetch: CustomFetch): Configuration {
  const configuration = new Configuration(openaiEndpoints, clientId, undefined, None());
  configuration[customFetch] = fetch;
  configuration.timeout = timeoutSeconds;
  return configuration;
}

async function discover(
  settings: IssuerSettings,
  fetch: CustomFetch,
  signal: AbortSignal | undefined,
): Promise<Configuration> {
  const address = checkedAddress(settings.issuer);
  try {
    return await discovery(address, settings.clientId, undefined, None(), {
      [customFetch]: fetch,
      timeout: timeoutSeconds,
      execute: address.protocol === "http:" ? [allowInsecureRequests] : [],
    });
  } catch (error) {
    throw issuerFailure(error, { doing: "find out how to log in", issuer: settings.issuer, signal });
  }
}

function checkedAddress(issuer: string): URL {
  const address = URL.canParse(issuer) ? new URL(issuer) : null;
  const isPlain = address !== null && address.search === "" && address.hash === "" && address.username === "";
  if (isPlain && (address.protocol === "https:" || isPlainLoopback(address))) return address;
  throw new BrigError(`oauth.issuer is not an https URL: ${issuer}`, {
    code: "config.invalid",
    hint: "for example: https://auth.example.com; http is accepted only for this machine",
  });
}

function isPlainLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && isLoopbackHost(hostname);
}
