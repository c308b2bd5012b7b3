import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { EgressGate } from "../gate.js";
import { hostOf } from "../rules/target.js";
import { exchange } from "./exchange.js";
import type { HttpOrigin } from "./http-origin.js";
import { prepareRequest } from "./prepare-request.js";
import { failure, type Refusal, refusalOf } from "./refusal.js";

/** Sends one request on to its target, and the answer back. */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  const inside = request.socket;
  const prepared = await prepareRequest(request, { gate, origin, isPlainHttp: true });
  if (prepared.kind === "refused") return answer(response, prepared.refusal);
  const { record, rule } = prepared;
  let { connection } = prepared;
  let end = await exchange(request, response, { ...prepared, gate, inside });
  // A server may close a kept connection in the very moment in which a request is sent.
  const isStale = connection.wasKept && end.errno !== null && end.bytesIn === 0 && end.cut === null;
  if (isStale && !response.destroyed) {
    const again = await prepared.reconnect();
    if (again !== null) {
      connection = again;
      end = await exchange(request, response, { ...prepared, connection, gate, inside });
    }
  }
  if (connection.isFree) origin.kept.keep(connection);
  const { cut, errno, bytesOut, bytesIn } = end;
  if (errno !== null) {
    const host = hostOf(connection.endpoint.target);
    if (response.headersSent) response.destroy();
    else answer(response, cut === null ? failure(errno, host) : refusalOf(cut, host));
  }
  const failed = errno === null ? ({ kind: "allowed" } as const) : ({ kind: "failed", errno } as const);
  await record(cut === null ? failed : { kind: "denied", denial: cut }, { rule, bytesOut, bytesIn });
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
