import type { IncomingMessage } from "node:http";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { hostOf, isSameTarget, parseAuthority, shownHost } from "../rules/target.js";
import { malformed, type Refusal, refusalOf } from "./refusal.js";

export type RequestTarget =
  | { kind: "target"; endpoint: Endpoint; authority: string; path: string }
  | { kind: "refused"; refusal: Refusal; denial: Denial; host: string };

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/**
 * Reads where a plain HTTP request goes. `fixed` is where its connection leads already; without, the request names
 * its target, as requests to a proxy do. The Host header must agree, since servers go by it.
 */
export function readRequestTarget(
  request: IncomingMessage,
  fixed: { endpoint: Endpoint; isTls: boolean } | null,
): RequestTarget {
  const url = request.url ?? "";
  const hosts = headerValues(request, "host");
  const [hostHeader = ""] = hosts;
  if (hosts.length > 1) return refused("a request must have one Host header", hostHeader);
  if (!hasClearLength(request)) return refused("the length of the request's body is ambiguous", hostHeader);
  const defaultPort = fixed?.isTls ? HTTPS_PORT : HTTP_PORT;
  const absolute = fixed?.isTls ? null : /^http:\/\/([^/?#]*)([^#]*)$/i.exec(url);
  if (absolute === null) {
    if (fixed === null) return refused(wrongUrl(url), hostHeader);
    if (!url.startsWith("/") && url !== "*")
      return refused("the target of the request cannot be read", hostHeader);
    return agreeing(request, fixed.endpoint, { authority: hostHeader, path: url, hostHeader, defaultPort });
  }
  const [, authority = "", path = ""] = absolute;
  const endpoint = parseAuthority(authority, { defaultPort: HTTP_PORT });
  if (endpoint === null) return unreadable(authority);
  if (fixed !== null && !isSameEndpoint(endpoint, fixed.endpoint))
    return otherName(fixed.endpoint, authority);
  // The very same endpoint: the user may have allowed it for this connection only.
  return agreeing(request, fixed?.endpoint ?? endpoint, {
    authority,
    path: path.startsWith("/") ? path : `/${path}`,
    hostHeader,
    defaultPort,
  });
}

function agreeing(
  request: IncomingMessage,
  endpoint: Endpoint,
  {
    authority,
    path,
    hostHeader,
    defaultPort,
  }: { authority: string; path: string; hostHeader: string; defaultPort: number },
): RequestTarget {
  if (request.method === "TRACE") return denied({ kind: "method", method: "TRACE" }, shownHost(authority));
  // Requests of HTTP/1.0 need none.
  if (hostHeader === "" && request.httpVersion === "1.0" && authority !== "")
    return { kind: "target", endpoint, authority, path };
  const named = parseAuthority(hostHeader, { defaultPort });
  if (named === null) return unreadable(hostHeader);
  if (!isSameEndpoint(named, endpoint)) return otherName(endpoint, hostHeader);
  return { kind: "target", endpoint, authority: hostHeader, path };
}

function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return isSameTarget(one.target, other.target) && one.port === other.port;
}

/** Accepts only "chunked" by itself, or one length: on anything else two programs may disagree where a body ends. */
function hasClearLength(request: IncomingMessage): boolean {
  const lengths = headerValues(request, "content-length");
  const encodings = headerValues(request, "transfer-encoding");
  if (encodings.length === 0) return lengths.length <= 1;
  return lengths.length === 0 && encodings.length === 1 && encodings[0]?.toLowerCase() === "chunked";
}

/** All of them: `headers` joins some and drops others. */
function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

function wrongUrl(url: string): string {
  if (url.startsWith("/"))
    return "this is a proxy for HTTP, which takes requests such as GET http://example.com/ HTTP/1.1";
  return "a proxy takes targets that begin with http://, and CONNECT for everything else";
}

function refused(what: string, host: string): RequestTarget {
  return {
    kind: "refused",
    refusal: malformed(what),
    denial: { kind: "malformed" },
    host: shownHost(host),
  };
}

function unreadable(text: string): RequestTarget {
  return denied({ kind: "malformed" }, shownHost(text));
}

function otherName({ target, port }: Endpoint, text: string): RequestTarget {
  return denied({ kind: "other-name", name: shownHost(text) }, `${hostOf(target)}:${port}`);
}

function denied(denial: Denial, host: string): RequestTarget {
  return { kind: "refused", refusal: refusalOf(denial, host), denial, host };
}
