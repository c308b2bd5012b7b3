import type { IncomingMessage } from "node:http";
import { hasToken } from "../../lib/http/bearer-token.js";
import { isLoopbackHost, isLoopbackUrl } from "../../lib/http/loopback.js";
import { ErrorCode } from "./incoming-message.js";

/** The only path that is served. */
export const MCP_PATH = "/mcp";

/** An answer that says why a request is not served. */
export interface HttpRefusal {
  status: number;
  reason: string;
  code?: number;
  id?: string | number | null;
  headers?: Record<string, string>;
}

const methods = ["GET", "POST", "DELETE"];

/** Why a request may not come from where it does; null if it may. */
export function originRefusal({ headers }: IncomingMessage): HttpRefusal | null {
  // A hostile site can let its name resolve to 127.0.0.1, so that its pages reach this server (DNS rebinding).
  // The Host header then has the site's name.
  if (!isLoopbackHost(headers.host)) return { status: 403, reason: "the Host header names another machine" };
  if (headers.origin !== undefined && !isLoopbackUrl(headers.origin))
    return { status: 403, reason: "pages of other machines are not served" };
  return null;
}

/** Why a request for the served path is not served, by its head alone; null if it is served. */
export function refusalOf({ method = "", headers }: IncomingMessage, token: string): HttpRefusal | null {
  if (!hasToken(headers, token))
    return {
      status: 401,
      reason: "the token is missing or wrong: send it as Authorization: Bearer TOKEN",
      headers: { "www-authenticate": 'Bearer realm="brig"' },
    };
  if (methods.includes(method)) return null;
  const allow = methods.join(", ");
  return { status: 405, reason: `use one of ${allow}`, headers: { allow } };
}

export function refusalResponse(refusal: HttpRefusal, request: IncomingMessage): Response {
  const { status, reason, code = ErrorCode.refused, id = null, headers = {} } = refusal;
  // Discards the rest of the request. A client that is still sending it would otherwise not read the answer.
  request.resume();
  return Response.json({ jsonrpc: "2.0", id, error: { code, message: reason } }, { status, headers });
}
