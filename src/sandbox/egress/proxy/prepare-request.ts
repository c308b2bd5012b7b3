import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { authorizationHeader } from "../../../lib/proxy/proxies.js";
import type { EgressOutcome } from "../attempt.js";
import { type Attempting, type EgressGate, type Opened, outcomeOf, type RecordAttempt } from "../gate.js";
import type { RequestDecision } from "../inspection.js";
import type { UpstreamProxy } from "../read-upstream.js";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { hostOf, isSameTarget, parseAuthority, shownHost } from "../rules/target.js";
import type { MaskedAnswer } from "../secrets/answer-mask.js";
import type { SignedRequest } from "../secrets/aws/sign-request.js";
import { failure, malformed, type Refusal, refusalOf } from "./refusal.js";
import { type KeptConnection, ServerConnection } from "./server-connection.js";

export type PreparedRequest =
  | { kind: "refused"; refusal: Refusal }
  | {
      kind: "ready";
      connection: ServerConnection;
      /** Connects once more, after a kept connection turned out to be closed. Null if that is not possible now. */
      reconnect(): Promise<ServerConnection | null>;
      /** Sent on in this form: the path with its query, and names and values of headers in turn. */
      path: string;
      headers: string[];
      /** Replaces the body of the program's request, if that has been read already. */
      body: Buffer | null;
      rule: string;
      record: RecordAttempt;
      /** The part of an answer that the program gets; null if it may not get any. */
      answer(incoming: IncomingMessage): MaskedAnswer | null;
    };

/**
 * Decides about a request, and connects to its target. A refusal has been recorded. `isPlainHttp`: it is sent on as it
 * is, so an upstream proxy gets it as a request for a URL, unless it came in TLS.
 */
export async function prepareRequest(
  request: IncomingMessage,
  { gate, origin, isPlainHttp = false }: { gate: EgressGate; origin: HttpOrigin; isPlainHttp?: boolean },
): Promise<PreparedRequest> {
  const { attempting, fixed } = origin;
  const isTls = fixed?.isTls ?? false;
  // A request that came in TLS is never sent on without it, so an upstream proxy gets no such request as it is.
  const isForUpstream = isPlainHttp && !isTls;
  const method = request.method ?? "GET";
  const canary = gate.canaries?.findInTexts([method, request.url ?? "", ...request.rawHeaders]) ?? null;
  const wanted = readRequestTarget(request, fixed);
  if (wanted.kind === "refused") {
    const record = gate.begin(attempting, { method, path: null, host: wanted.host, port: null });
    const denial: Denial = canary === null ? wanted.denial : { kind: "canary", name: canary, isLeak: true };
    await record({ kind: "denied", denial });
    return { kind: "refused", refusal: wanted.refusal };
  }
  const { endpoint, authority } = wanted;
  const host = hostOf(endpoint.target);
  const record = gate.begin(attempting, {
    method,
    host,
    port: endpoint.port,
    path: wanted.path.replace(/\?.*$/s, ""),
  });
  const shown = endpoint.port === (isTls ? 443 : 80) ? host : `${host}:${endpoint.port}`;
  const headers = withHeader(forwardedHeaders(request.rawHeaders), "host", authority);
  // The request is judged before anybody is asked about the host: an answer about a host is none about its requests.
  const decision: RequestDecision =
    canary !== null
      ? { kind: "denied", denial: { kind: "canary", name: canary, isLeak: true } }
      : gate.inspection === null
        ? { kind: "allowed", rule: null, headers, path: wanted.path, signing: null }
        : gate.inspection.judge({ ...wanted, method, parsedHeaders: request.headers, headers, isTls });
  if (decision.kind === "denied") {
    const byHost = gate.decide(endpoint);
    // A host that is not allowed at all is refused for that reason, unless the user could allow it.
    const isByHost = byHost.kind === "denied" && gate.ask === null && canary === null;
    const { denial } = isByHost ? byHost : decision;
    await record({ kind: "denied", denial });
    return { kind: "refused", refusal: refusalOf(denial, shown) };
  }
  const opening = {
    ...origin,
    gate,
    isPlainHttp: isForUpstream,
    mayBeKept: isPlainHttp && isRepeatable(request),
  };
  const opened = await openFor(endpoint, opening);
  if (opened.kind !== "open") {
    await record(outcomeOf(opened), { rule: opened.rule });
    const refusal = opened.kind === "denied" ? refusalOf(opened.denial, shown) : failure(opened.errno, shown);
    return { kind: "refused", refusal };
  }
  const { socket, rule } = opened.connection;
  const signed = await signOutgoing(request, { gate, decision, socket, isTls, authority });
  if (signed.kind !== "signed") {
    socket.destroy();
    const outcome = signingOutcome(signed, decision.signing?.secret.name ?? "");
    await record(outcome, { rule: decision.rule ?? rule });
    const refusal =
      outcome.kind === "denied" ? refusalOf(outcome.denial, shown) : failure(outcome.errno, shown);
    return { kind: "refused", refusal };
  }
  return {
    ...{
      kind: "ready",
      connection: opened.connection,
      rule: decision.rule ?? rule,
      record,
      body: signed.body,
    },
    reconnect: async () => {
      const again = await openFor(endpoint, opening);
      return again.kind === "open" ? again.connection : null;
    },
    ...forUpstream(
      { path: decision.path, headers: signed.headers },
      { upstream: isForUpstream ? opened.upstream : null, authority },
    ),
    answer: (incoming) => {
      const headers = forwardedHeaders(incoming.rawHeaders);
      return gate.inspection === null
        ? { reason: incoming.statusMessage ?? "", headers, through: [] }
        : gate.inspection.answer(incoming, { endpoint, isTls, headers, method });
    },
  };
}

/** A proxy gets the whole URL, and its password, which no program sees. */
function forUpstream(
  { path, headers }: { path: string; headers: readonly string[] },
  { upstream, authority }: { upstream: UpstreamProxy | null; authority: string },
): { path: string; headers: string[] } {
  if (upstream === null) return { path, headers: [...headers] };
  return {
    // `OPTIONS *` is a URL without a path for a proxy (RFC 9112, 3.2.4).
    path: `http://${authority}${path === "*" ? "" : path}`,
    headers: [...headers, ...authorizationHeader(upstream)],
  };
}

interface Opening extends HttpOrigin {
  gate: EgressGate;
  isPlainHttp: boolean;
  mayBeKept: boolean;
}

type OpenedConnection =
  | { kind: "open"; connection: ServerConnection; upstream: UpstreamProxy | null }
  | Exclude<Opened, { kind: "open" }>;

/** Opens a connection; in TLS, if the program speaks TLS. */
async function openFor(endpoint: Endpoint, opening: Opening): Promise<OpenedConnection> {
  const { gate, kept, fixed, mayBeKept } = opening;
  const ready = mayBeKept ? kept.takeFor(endpoint) : null;
  if (ready !== null) {
    if (gate.allows(ready.socket, endpoint)) return { kind: "open", connection: ready, upstream: null };
    ready.socket.destroy();
  }
  const opened = await openPlain(endpoint, opening);
  if (opened.kind !== "open") return opened;
  const { rule, upstream } = opened;
  // An upstream proxy gets each request of plain HTTP by itself.
  const isForOne = upstream !== null && opening.isPlainHttp;
  const connect = (socket: Socket) =>
    new ServerConnection(socket, { endpoint, rule, mayBeKept: mayBeKept && !isForOne });
  if (!fixed?.isTls) return { kind: "open", connection: connect(opened.socket), upstream };
  const secured = await gate.secure(opened.socket, endpoint);
  if (secured.kind === "connected") return { kind: "open", connection: connect(secured.socket), upstream };
  return { ...secured, rule };
}

/**
 * Requests without a body that may be sent twice. Others have a connection of their own: a server that takes a body for
 * another request does not read on after the first one, and a kept connection that the server is just closing costs nothing.
 */
function isRepeatable({ method = "", headers }: IncomingMessage): boolean {
  const hasBody = headers["transfer-encoding"] !== undefined || headers["content-length"] !== undefined;
  return ["GET", "HEAD", "OPTIONS"].includes(method) && !hasBody;
}

/** The connection that is open already serves for the first request; the rules still have to allow it. */
async function openPlain(
  endpoint: Endpoint,
  { gate, attempting, fixed, isPlainHttp }: Opening,
): Promise<Opened> {
  const ready = fixed?.takeSocket() ?? null;
  if (ready === null) return await gate.open(endpoint, { ...attempting, isPlainHttp });
  const decision = gate.decide(endpoint);
  if (decision.kind === "allowed") return { ...decision, kind: "open", socket: ready, upstream: null };
  ready.destroy();
  return { ...decision, rule: null };
}

/** Origin of an HTTP connection. */
export interface HttpOrigin {
  attempting: Attempting;
  kept: KeptConnection;
  /** The server it leads to; null if it leads to the proxy. */
  fixed: {
    endpoint: Endpoint;
    /** Whether the program speaks TLS, which ends here. */
    isTls: boolean;
    /** The connection that is already open to there, once. */
    takeSocket(): Socket | null;
  } | null;
}

/** Headers that are only for the connection to the next program (RFC 9110, 7.6.1), besides those that `Connection` names. */
const HOP_BY_HOP = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);

/** A program cannot have these dropped by naming them in `Connection`. */
const NEVER_DROPPED = new Set(["host", "content-length", "authorization", "cookie"]);

/** Headers as names and values in turn, in their order and spelling, without those that are for this hop only. */
function forwardedHeaders(rawHeaders: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [{ name, lower: name.toLowerCase(), value: rawHeaders[at + 1] ?? "" }] : [],
  );
  const named = pairs
    .filter(({ lower }) => lower === "connection")
    .flatMap(({ value }) => value.split(",").map((one) => one.trim().toLowerCase()))
    .filter((name) => !NEVER_DROPPED.has(name));
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return pairs.filter(({ lower }) => !dropped.has(lower)).flatMap(({ name, value }) => [name, value]);
}

/** Returns the headers with another value of one, at its place; at the end if there was none. */
function withHeader(headers: readonly string[], name: string, value: string): string[] {
  const others = headers.flatMap((text, at) => {
    const header = headers[at - (at % 2)] ?? "";
    return header.toLowerCase() === name ? [] : [text];
  });
  return [name === "host" ? "Host" : name, value, ...others];
}

interface Outgoing {
  gate: EgressGate;
  decision: Extract<RequestDecision, { kind: "allowed" }>;
  /** Socket on which the request is sent. */
  socket: Socket;
  isTls: boolean;
  authority: string;
}

/** The request as it is sent on: signed with a key of AWS, if the program signed it with the placeholder of one. */
async function signOutgoing(
  request: IncomingMessage,
  { gate: { inspection, limits }, decision, socket, isTls, authority }: Outgoing,
): Promise<SignedRequest> {
  const { signing, path, headers } = decision;
  if (signing === null || inspection === null) return { kind: "signed", headers, body: null };
  return await inspection.sign(signing, {
    ...{ method: request.method ?? "GET", isTls, authority, path, headers },
    ...{ from: request, to: socket, idleTimeoutMs: limits.idleTimeoutMs },
  });
}

/** Recorded outcome for a request that could not be signed. */
function signingOutcome(
  signed: Exclude<SignedRequest, { kind: "signed" }>,
  name: string,
): Exclude<EgressOutcome, { kind: "allowed" }> {
  if (signed.kind === "ended") return { kind: "failed", errno: "ECONNRESET" };
  return { kind: "denied", denial: { kind: "signing", name, problem: signed.problem } };
}

type RequestTarget =
  | { kind: "target"; endpoint: Endpoint; authority: string; path: string }
  | { kind: "refused"; refusal: Refusal; denial: Denial; host: string };

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/**
 * Reads where a plain HTTP request goes. `fixed` is where its connection leads already; without, the request names
 * its target, as requests to a proxy do. The Host header must agree, since servers go by it.
 */
function readRequestTarget(
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
