import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { refusedAnswer } from "../serve/http/refusal.js";

export function sendJson(
  outgoing: ServerResponse,
  { status = 200, value, headers }: { status?: number; value?: unknown; headers?: OutgoingHttpHeaders },
): void {
  if (value === undefined) return void outgoing.writeHead(status, headers).end();
  const bytes = Buffer.from(JSON.stringify(value));
  outgoing
    .writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers })
    .end(bytes);
}

/** The form of errors of E2B's API. Gives the status. */
export function sendError(error: unknown, incoming: IncomingMessage, outgoing: ServerResponse): number {
  const { status, headers, body } = refusedAnswer(error);
  if (outgoing.headersSent) outgoing.destroy();
  else {
    // A client that is still sending would not read the answer.
    incoming.resume();
    const { message, hint } = body.error;
    const value = { code: status, message: hint === undefined ? message : `${message}; ${hint}` };
    sendJson(outgoing, {
      status,
      value,
      headers: { ...headers, ...(!incoming.complete && { connection: "close" }) },
    });
  }
  return status;
}
