import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { closeOf } from "../../../lib/http/web-server.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { MemoryBudget, MemoryShare } from "./memory-budget.js";
import { type RefusedAnswer, refusedAnswer, refuseOnSocket } from "./refusal.js";
import type { ServedClient } from "./served-client.js";

/** Requests at the address of the service that are none of its routes: their answers are not made of one value. */
export interface OtherProtocol {
  takes(incoming: IncomingMessage): boolean;
  /** Answers a request. Errors, as long as no head is sent: refusals and others, which are sent by `bodyOf`. */
  answer(incoming: IncomingMessage, outgoing: ServerResponse, call: OtherCall): Promise<void>;
  /** The same for a request to become a WebSocket. Errors, as long as nothing is written to the socket. */
  upgrade(incoming: IncomingMessage, socket: Duplex, call: OtherCall): Promise<void>;
  /** The JSON with which an error is answered. */
  bodyOf(answer: RefusedAnswer): object;
}

export interface OtherCall extends RequestChecks {
  /** Aborted when the client has gone, and when the service ends at once. */
  signal: AbortSignal;
  /** What is kept for the request counts here, until it is answered. */
  memory: MemoryShare;
}

/** What is checked of requests, whatever their protocol is. */
interface RequestChecks {
  /** Error: a refusal with 403 for a request that a page of another site may have made. */
  refuseOtherSites(incoming: IncomingMessage): void;
  /** The client whose `Authorization: Bearer TOKEN` the request has. Errors: refusals with 401 and 429. */
  clientOf(incoming: IncomingMessage): ServedClient;
  /** Notes that the request is of a client, which it has shown by something else than its token. Errors: refusals with 401, if there is no such client any more, and 429. */
  isOf(client: string): void;
}

interface Surroundings extends RequestChecks {
  memory: MemoryBudget;
  signal: AbortSignal;
  onFault: (error: unknown) => void;
}

/** Answers one request by another protocol, and sends an error of it. Never rejects. */
export async function answerOther(
  protocol: OtherProtocol,
  { incoming, outgoing }: { incoming: IncomingMessage; outgoing: ServerResponse },
  { memory: budget, signal: over, onFault, ...checks }: Surroundings,
): Promise<void> {
  const gone = new AbortController();
  void closeOf(outgoing).then((isSent) => isSent || gone.abort(disconnected()));
  using either = new AnySignal([gone.signal, over]);
  using memory = budget.share();
  try {
    await protocol.answer(incoming, outgoing, { ...ofCaller(checks, memory), signal: either.signal, memory });
  } catch (error) {
    const answer = refusedAnswer(error);
    if (answer.status === 500 && !either.signal.aborted) onFault(error);
    if (outgoing.headersSent) return void outgoing.destroy();
    // Discards the rest of the request. A client that is still sending it would otherwise not read the answer.
    incoming.resume();
    const close = !incoming.complete && { connection: "close" };
    sendJson(outgoing, {
      status: answer.status,
      value: protocol.bodyOf(answer),
      headers: { ...close, ...answer.headers },
    });
  }
}

/** The same for a request to become a WebSocket. */
export async function upgradeOther(
  protocol: OtherProtocol,
  { incoming, socket }: { incoming: IncomingMessage; socket: Duplex },
  { memory: budget, signal: over, onFault, ...checks }: Surroundings,
): Promise<void> {
  const gone = new AbortController();
  socket.once("close", () => gone.abort(disconnected()));
  using either = new AnySignal([gone.signal, over]);
  using memory = budget.share();
  try {
    await protocol.upgrade(incoming, socket, { ...ofCaller(checks, memory), signal: either.signal, memory });
  } catch (error) {
    const answer = refusedAnswer(error);
    if (answer.status === 500 && !either.signal.aborted) onFault(error);
    refuseOnSocket(socket, answer, protocol.bodyOf(answer));
  }
}

/** What is kept for a request counts as its client's once that is known. */
function ofCaller(checks: RequestChecks, memory: MemoryShare): RequestChecks {
  return {
    refuseOtherSites: (incoming) => checks.refuseOtherSites(incoming),
    clientOf(incoming) {
      const client = checks.clientOf(incoming);
      memory.ownedBy(client.name);
      return client;
    },
    isOf(client) {
      checks.isOf(client);
      memory.ownedBy(client);
    },
  };
}

function disconnected(): Error {
  return new DOMException("the client has disconnected", "AbortError");
}

export function sendJson(
  outgoing: ServerResponse,
  {
    status = 200,
    value,
    headers,
  }: { status?: number; value?: unknown; headers?: Readonly<Record<string, string>> },
): void {
  if (value === undefined) return void outgoing.writeHead(status, headers).end();
  const bytes = Buffer.from(JSON.stringify(value));
  outgoing
    .writeHead(status, {
      "content-type": "application/json",
      "cache-control": "no-store",
      "content-length": bytes.length,
      ...headers,
    })
    .end(bytes);
}
