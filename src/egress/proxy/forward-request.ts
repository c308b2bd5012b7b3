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
import type { EgressGate } from "../gate.js";
import type { Denial } from "../rules/denial.js";
import { hostOf } from "../rules/target.js";
import type { MaskedAnswer } from "../secrets/masked-answer.js";
import { closed, errnoOrIo } from "../tunnel/join.js";
import type { HttpOrigin } from "./http-origin.js";
import { prepareRequest } from "./prepare-request.js";
import { failure, type Refusal } from "./refusal.js";

const RESPONSE_HEADERS_MAX_BYTES = 131_072;

/** Sends one request on to its target, and the answer back. */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  const prepared = await prepareRequest(request, { gate, origin, isPlainHttp: true });
  if (prepared.kind === "refused") return answer(response, prepared.refusal);
  const { socket, endpoint, path, headers, record, rule } = prepared;
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
    path,
    headers: withBodyLength(request, headers),
    maxHeaderSize: RESPONSE_HEADERS_MAX_BYTES,
  });
  if (outgoing === null) fail(UNSENDABLE);
  else {
    outgoing.once("response", (incoming) => {
      const answered = prepared.answer(incoming);
      if (answered === null || !passHead(response, incoming.statusCode ?? 0, answered))
        return fail(UNSENDABLE);
      pipeline([incoming, ...answered.through, response], (error) => {
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
function passHead(response: ServerResponse, status: number, { reason, headers }: MaskedAnswer): boolean {
  try {
    response.writeHead(status, reason, headers);
    return true;
  } catch {
    return false;
  }
}

/** Bodies without a length keep their encoding, which is "chunked" and nothing else. */
function withBodyLength(request: IncomingMessage, headers: readonly string[]): string[] {
  const isChunked = request.headers["transfer-encoding"] !== undefined;
  return isChunked ? [...headers, "Transfer-Encoding", "chunked"] : [...headers];
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
