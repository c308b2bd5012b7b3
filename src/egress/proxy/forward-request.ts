import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type RequestOptions,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { type EgressGate, type Opened, outcomeOf, type RecordAttempt } from "../gate.js";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { hostOf } from "../rules/target.js";
import { closed, errnoOrIo } from "../tunnel/join.js";
import { authorizationHeader } from "../upstream/dial-upstream.js";
import type { UpstreamProxy } from "../upstream/read-upstream.js";
import { forwardedHeaders, withHeader } from "./forwarded-headers.js";
import type { HttpOrigin } from "./http-origin.js";
import { failure, type Refusal, refusalOf } from "./refusal.js";
import { readRequestTarget } from "./request-target.js";

const RESPONSE_HEADERS_MAX_BYTES = 131_072;

/** Sends one request of plain HTTP on to its target, and the answer back. */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  const prepared = await prepareRequest(request, { gate, origin, isPlainHttp: true });
  if (prepared.kind === "refused") return answer(response, prepared.refusal);
  const { socket, endpoint, authority, record, rule, upstream } = prepared;
  let cut: Denial | null = null;
  gate.watch(socket, endpoint, (denial) => {
    cut = denial;
  });
  socket.setTimeout(gate.limits.idleTimeoutMs, () => socket.destroy());
  const before = { out: socket.bytesWritten, in: socket.bytesRead };
  let errno: string | null = null;
  const fail = (reason: string) => {
    errno ??= reason;
    if (response.headersSent) response.destroy();
    else answer(response, failure(errno, hostOf(endpoint.target)));
    socket.destroy();
  };
  const outgoing = requestOn(socket, {
    method: request.method,
    path: upstream === null ? prepared.path : `http://${authority}${prepared.path}`,
    headers: [
      ...requestHeaders(request, authority),
      ...(upstream === null ? [] : authorizationHeader(upstream)),
    ],
    maxHeaderSize: RESPONSE_HEADERS_MAX_BYTES,
  });
  if (outgoing === null) fail(UNSENDABLE);
  else {
    outgoing.once("response", (incoming) => {
      if (!passHead(incoming, response)) return fail(UNSENDABLE);
      pipeline(incoming, response, (error) => {
        if (error) errno ??= errnoOrIo(error);
        socket.destroy();
      });
    });
    outgoing.once("error", (error) => fail(errnoOrIo(error)));
    // A program that goes away ends the request as well.
    response.once("close", () => outgoing.destroy());
    pipeline(request, outgoing, (error) => {
      if (error && !response.writableEnded) outgoing.destroy();
    });
  }
  await closed(socket);
  // An answer that switches to another protocol without being asked is none.
  if (!response.headersSent && !response.destroyed) fail(UNSENDABLE);
  const bytes = { bytesOut: socket.bytesWritten - before.out, bytesIn: socket.bytesRead - before.in };
  const outcome =
    cut !== null
      ? ({ kind: "denied", denial: cut } as const)
      : errno === null
        ? ({ kind: "allowed" } as const)
        : ({ kind: "failed", errno } as const);
  await record(outcome, { rule, ...bytes });
}

/** The errno of what one side has sent and the other side may not be sent, because it is no proper HTTP. */
export const UNSENDABLE = "EPROTO";

/** Null if Node refuses to send such a request. */
export function requestOn(socket: Socket, options: RequestOptions): ClientRequest | null {
  try {
    return openRequest({ ...options, createConnection: () => socket, setHost: false });
  } catch {
    return null;
  }
}

/** False for a status or a reason that Node reads but does not write, such as status 99. */
function passHead(incoming: IncomingMessage, response: ServerResponse): boolean {
  const { statusCode = 0, statusMessage, rawHeaders } = incoming;
  try {
    response.writeHead(statusCode, statusMessage, forwardedHeaders(rawHeaders));
    return true;
  } catch {
    return false;
  }
}

export type PreparedRequest =
  | { kind: "refused"; refusal: Refusal }
  | {
      kind: "ready";
      socket: Socket;
      endpoint: Endpoint;
      authority: string;
      path: string;
      rule: string;
      record: RecordAttempt;
      /** The proxy that gets the request in place of its target. */
      upstream: UpstreamProxy | null;
    };

/** Decides about a request, and connects to its target. A refusal has been recorded. */
export async function prepareRequest(
  request: IncomingMessage,
  {
    gate,
    origin: { attempting, fixed },
    isPlainHttp = false,
  }: { gate: EgressGate; origin: HttpOrigin; isPlainHttp?: boolean },
): Promise<PreparedRequest> {
  const wanted = readRequestTarget(request, fixed?.endpoint ?? null);
  const asked = { method: request.method ?? null, path: null };
  if (wanted.kind === "refused") {
    const record = gate.begin(attempting, { ...asked, host: wanted.host, port: null });
    await record({ kind: "denied", denial: wanted.denial });
    return { kind: "refused", refusal: wanted.refusal };
  }
  const { endpoint, authority, path } = wanted;
  const host = hostOf(endpoint.target);
  const record = gate.begin(attempting, {
    ...asked,
    host,
    port: endpoint.port,
    path: path.replace(/\?.*$/s, ""),
  });
  const opened = await openFor(endpoint, { gate, attempting, fixed, isPlainHttp });
  if (opened.kind !== "open") {
    await record(outcomeOf(opened), { rule: opened.rule });
    const shown = endpoint.port === 80 ? host : `${host}:${endpoint.port}`;
    const refusal = opened.kind === "denied" ? refusalOf(opened.denial, shown) : failure(opened.errno, shown);
    return { kind: "refused", refusal };
  }
  const { socket, rule, upstream } = opened;
  return {
    kind: "ready",
    endpoint,
    authority,
    path,
    record,
    socket,
    rule,
    upstream: isPlainHttp ? upstream : null,
  };
}

/** The connection that is open already serves for the first request; the rules still have to allow it. */
async function openFor(
  endpoint: Endpoint,
  { gate, attempting, fixed, isPlainHttp }: HttpOrigin & { gate: EgressGate; isPlainHttp: boolean },
): Promise<Opened> {
  const ready = fixed?.takeSocket() ?? null;
  if (ready === null) return await gate.open(endpoint, { ...attempting, isPlainHttp });
  const decision = gate.decide(endpoint);
  if (decision.kind === "allowed") return { ...decision, kind: "open", socket: ready, upstream: null };
  ready.destroy();
  return { ...decision, rule: null };
}

function requestHeaders(request: IncomingMessage, authority: string): string[] {
  const headers = withHeader(forwardedHeaders(request.rawHeaders), "host", authority);
  // Bodies without a length keep their encoding, which is "chunked" and nothing else.
  if (request.headers["transfer-encoding"] !== undefined) headers.push("Transfer-Encoding", "chunked");
  return headers;
}

function answer(response: ServerResponse, { status, outcome, text }: Refusal): void {
  if (response.destroyed) return;
  response.writeHead(status, STATUS_CODES[status], {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "x-brig-egress": outcome,
    connection: "close",
  });
  response.end(text);
}
