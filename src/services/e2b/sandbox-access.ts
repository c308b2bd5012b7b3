import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Refusal } from "../serve/http/refusal.js";
import { type E2bSandbox, type E2bSandboxes, isToken } from "./e2b-sandboxes.js";

/** The port of E2B's daemon in its sandboxes. */
export const ENVD_PORT = 49_983;

/** What a request that is for a sandbox names. */
export interface SandboxAddress {
  id: string;
  port: number;
  /** Whether the name of the host says it, as in a browser, and not headers. */
  isByHost: boolean;
}

/** Null for a request that is for no sandbox. */
export function addressOf({ headers }: IncomingMessage): SandboxAddress | null {
  const id = headers["e2b-sandbox-id"];
  if (typeof id === "string") return { id, port: Number(headers["e2b-sandbox-port"]), isByHost: false };
  const [, port, named = ""] = /^([0-9]{1,5})-([A-Za-z0-9_-]{1,64})\./.exec(headers.host ?? "") ?? [];
  return port === undefined ? null : { id: named, port: Number(port), isByHost: true };
}

const MAX_SIGNED_LENGTH = 4096;

/** Whether it is for a file of a sandbox that only its signature says, as in the URLs that clients make for others. */
export function isSigned({ url = "" }: IncomingMessage): boolean {
  return url.length <= MAX_SIGNED_LENGTH && url.startsWith("/files?") && urlOf(url).has("signature");
}

/** The sandbox whose access token has signed the request. Null if there is none. */
function signedFor(incoming: IncomingMessage, sandboxes: Iterable<E2bSandbox>): E2bSandbox | null {
  if (!isSigned(incoming)) return null;
  const query = urlOf(`${incoming.url}`);
  const expires = query.get("signature_expiration");
  if (expires !== null && !(Number(expires) * 1000 > Date.now())) return null;
  const operation = incoming.method === "GET" || incoming.method === "HEAD" ? "read" : "write";
  const before = `${query.get("path") ?? ""}:${operation}:${query.get("username") ?? ""}:`;
  const after = expires === null ? "" : `:${expires}`;
  for (const sandbox of sandboxes) {
    const digest = createHash("sha256").update(`${before}${sandbox.accessToken}${after}`).digest("base64");
    if (isToken(query.get("signature") ?? "", `v1_${digest.replace(/=+$/, "")}`)) return sandbox;
  }
  return null;
}

/**
 * The sandbox that a request may use. Errors: refusals with 502 for one that is not there any more, and with 401 and 403 for who may not
 * use it.
 */
export function sandboxFor(
  incoming: IncomingMessage,
  address: SandboxAddress | null,
  sandboxes: E2bSandboxes,
): E2bSandbox {
  if (address === null)
    return signedFor(incoming, sandboxes.all()) ?? refuse("the signature is wrong, or has expired");
  const found = sandboxes.withId(address.id);
  if (found === null)
    throw new Refusal(`the sandbox ${JSON.stringify(address.id)} was not found`, {
      status: 502,
      code: "sandbox.gone",
    });
  const { headers } = incoming;
  const given = headers["x-access-token"];
  const isPort = address.port !== ENVD_PORT;
  // Whoever knows the name of a port may use it, as with E2B, unless its client wants a token for that.
  if (isPort && address.isByHost) {
    const traffic = headers["e2b-traffic-access-token"];
    if (found.trafficToken === null || isToken(`${traffic}`, found.trafficToken)) return found;
    throw new Refusal("the ports of this sandbox are not public", {
      status: 403,
      code: "serve.refused",
      hint: "send its trafficAccessToken in the header e2b-traffic-access-token",
    });
  }
  if (given === undefined && !isPort && signedFor(incoming, [found]) !== null) return found;
  if (isToken(given === undefined ? undefined : `${given}`, found.accessToken)) return found;
  return refuse("the access token of the sandbox is missing or wrong");
}

function refuse(message: string): never {
  throw new Refusal(message, {
    status: 401,
    code: "serve.refused",
    hint: "send what the API gives as envdAccessToken in the header X-Access-Token",
  });
}

function urlOf(url: string): URLSearchParams {
  return new URLSearchParams(url.slice(url.indexOf("?") + 1));
}
