import type { IncomingMessage, ServerResponse } from "node:http";
import { notUnderstood } from "../wire/sent-error.js";

export function sendJson(response: ServerResponse, status: number, value: object): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response
    .writeHead(status, { "content-type": "application/json", "content-length": bytes.length })
    .end(bytes);
}

/** Error: `serve.failed` for more than so much. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw notUnderstood();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
