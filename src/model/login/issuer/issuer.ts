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
import { BrigError } from "../../../errors.js";
import { isLoopbackHost } from "../../endpoint/loopback.js";
import { boundedFetch } from "./bounded-fetch.js";
import { type IssuerSettings, isOpenai, openaiIssuer } from "./issuer-settings.js";
import { issuerFailure } from "./login-failure.js";

/** The discovery document of OpenAI's issuer names the endpoints of other clients; these are the ones that Codex's client has. */
const openaiEndpoints: ServerMetadata = {
  issuer: openaiIssuer.issuer,
  authorization_endpoint: `${openaiIssuer.issuer}/oauth/authorize`,
  token_endpoint: `${openaiIssuer.issuer}/oauth/token`,
  revocation_endpoint: `${openaiIssuer.issuer}/oauth/revoke`,
  jwks_uri: `${openaiIssuer.issuer}/.well-known/jwks.json`,
};

/** What a login asks for: who it is, and a refresh token. */
export const loginScope = "openid profile email offline_access";

const timeoutSeconds = 30;

/**
 * What a conversation with the issuer needs: its endpoints, and the checks of everything it answers. An abort ends the requests that
 * are made with it. `http` is refused but on this machine (`config.invalid`); an issuer that is not there is `model.unreachable`.
 */
export async function connectIssuer(
  settings: IssuerSettings,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Configuration> {
  const address = checkedAddress(settings.issuer);
  const fetch = boundedFetch(signal);
  const configuration = isOpenai(settings)
    ? knownIssuer(openaiEndpoints, { clientId: settings.clientId, fetch })
    : await discover(address, { settings, fetch, signal });
  // The signature of an id_token is checked even though it comes straight from the issuer: its claims decide whose login it is.
  enableNonRepudiationChecks(configuration);
  return configuration;
}

function knownIssuer(
  endpoints: ServerMetadata,
  { clientId, fetch }: { clientId: string; fetch: CustomFetch },
): Configuration {
  const configuration = new Configuration(endpoints, clientId, undefined, None());
  configuration[customFetch] = fetch;
  configuration.timeout = timeoutSeconds;
  return configuration;
}

interface Discovery {
  settings: IssuerSettings;
  fetch: CustomFetch;
  signal: AbortSignal | undefined;
}

async function discover(address: URL, { settings, fetch, signal }: Discovery): Promise<Configuration> {
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
    hint: "for example: https://auth.example.com; http is for this machine only",
  });
}

function isPlainLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && isLoopbackHost(hostname);
}
