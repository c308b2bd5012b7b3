import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { authorizationHeader } from "../../../lib/proxy/proxy-address.js";
import { type EgressGate, type Opened, outcomeOf, type RecordAttempt } from "../gate.js";
import type { RequestDecision } from "../inspection.js";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { hostOf } from "../rules/target.js";
import type { MaskedAnswer } from "../secrets/masked-answer.js";
import type { UpstreamProxy } from "../upstream/read-upstream.js";
import { forwardedHeaders, withHeader } from "./forwarded-headers.js";
import type { HttpOrigin } from "./http-origin.js";
import { failure, type Refusal, refusalOf } from "./refusal.js";
import { readRequestTarget } from "./request-target.js";
import { ServerConnection } from "./server-connection.js";
import { signingOutcome, signOutgoing } from "./sign-outgoing.js";

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
