import type { IncomingMessage } from "node:http";
import { hasToken } from "../../../lib/http/bearer-token.js";
import { isLoopbackHost, isLoopbackUrl } from "../../../lib/http/loopback.js";
import { Refusal } from "./refusal.js";

/** Who may use the service. Each client sees only what it has made itself. */
export interface ServedClient {
  name: string;
  token: string;
}

/** Error: a refusal with 403 for a request that a page of another site may have made. */
export function refuseOtherSites({ headers }: IncomingMessage): void {
  // A hostile site can let its name resolve to 127.0.0.1, so that its pages reach this server (DNS rebinding). The
  // Host header then has the site's name.
  if (!isLoopbackHost(headers.host)) throw forbidden("the Host header names another machine");
  if (headers.origin !== undefined && !isLoopbackUrl(headers.origin))
    throw forbidden("pages of other machines are not served");
}

/** The client whose token the request has. Error: a refusal with 401. */
export function clientOf({ headers }: IncomingMessage, clients: readonly ServedClient[]): string {
  // All are compared, so that the time says nothing about which one it was.
  const matching = clients.filter(({ token }) => hasToken(headers, token));
  const [client] = matching;
  if (client !== undefined) return client.name;
  throw new Refusal("the token is missing or wrong", {
    status: 401,
    code: "serve.refused",
    hint: "send it as Authorization: Bearer TOKEN",
    headers: { "www-authenticate": 'Bearer realm="brig"' },
  });
}

function forbidden(message: string): Refusal {
  return new Refusal(message, {
    status: 403,
    code: "serve.refused",
    hint: "connect to 127.0.0.1 or localhost",
  });
}
