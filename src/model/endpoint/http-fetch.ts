import { type IncomingMessage, request as openHttp } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { noteRequestSent } from "./request-sent.js";

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * `fetch` with a string as body. Node's own gives up after five minutes of silence, whatever is configured.
 * Redirects are not followed: they would send the credentials to another host.
 */
export async function httpFetch(address: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const url = new URL(address instanceof Request ? address.url : address);
  const { method = "GET", body, signal } = init;
  const headers = Object.fromEntries(new Headers(init.headers));
  // Loading TLS takes ten milliseconds, and a model on this machine does not need it.
  const open = url.protocol === "https:" ? (await import("node:https")).request : openHttp;
  return await new Promise((resolve, reject) => {
    const request = open(url, { method, headers, signal: signal ?? undefined });
    request.on("response", (answer) => {
      try {
        resolve(responseOf(answer));
      } catch (error) {
        request.destroy();
        reject(error);
      }
    });
    request.on("error", reject);
    request.once("finish", noteRequestSent);
    request.end(body);
  });
}

function responseOf(answer: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText, rawHeaders } = answer;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  if (WITHOUT_BODY.has(status)) {
    answer.resume();
    return new Response(null, { status, statusText, headers });
  }
  const body: NodeStream<Uint8Array> = Readable.toWeb(answer);
  return new Response(body as ReadableStream<Uint8Array>, { status, statusText, headers });
}
