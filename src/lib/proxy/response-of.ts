import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** `content` is the body, where it is not to be taken as it was sent. */
export function responseOf(answer: IncomingMessage, content: Readable = answer): Response {
  const { statusCode: status = 0, statusMessage: statusText, rawHeaders } = answer;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  if (WITHOUT_BODY.has(status)) {
    answer.resume();
    return new Response(null, { status, statusText, headers });
  }
  const body: NodeStream<Uint8Array> = Readable.toWeb(content);
  return new Response(body as ReadableStream<Uint8Array>, { status, statusText, headers });
}
