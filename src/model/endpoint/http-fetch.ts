import { type IncomingMessage, request as openHttp } from "node:http";
import { type Duplex, pipeline, Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type * as zlib from "node:zlib";
import { unusableResponse } from "./model-failure.js";
import { noteRequestSent } from "./request-sent.js";

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

export interface JsonPost {
  headers: Readonly<Record<string, string>>;
  body: string;
  /** An abort ends the request, and also the response while its body is being read. */
  signal: AbortSignal;
  /** Aborts when the endpoint has been silent for too long, with the error that the caller then gets. */
  silence: AbortSignal;
}

/**
 * Sends one request. Node's `fetch` is not used: it gives up after five minutes of silence, whatever is
 * configured, and takes long to load. The first use of `Response` loads it too, so that comes only after the
 * request has been sent. Redirects are not followed: they would send the credentials to another host.
 */
export async function postJson(url: URL, { headers, body, signal, silence }: JsonPost): Promise<Response> {
  // Loading TLS takes ten milliseconds, and a model on this machine does not need it.
  const open = url.protocol === "https:" ? (await import("node:https")).request : openHttp;
  return await new Promise((resolve, reject) => {
    const request = open(url, { method: "POST", headers: { ...headers }, signal });
    const breakOff = () => request.destroy(silence.reason);
    if (silence.aborted) breakOff();
    else silence.addEventListener("abort", breakOff, { once: true });
    request.on("response", (answer) => {
      responseOf(answer).then(resolve, (error: unknown) => {
        request.destroy();
        reject(error);
      });
    });
    request.on("error", reject);
    // Node closes the connection without an error after "101 Switching Protocols".
    request.on("close", () => reject(new Error("the connection was closed without an answer")));
    request.once("finish", noteRequestSent);
    request.end(body);
  });
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const { statusCode: status = 0, statusMessage: statusText, rawHeaders } = answer;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  if (WITHOUT_BODY.has(status)) {
    answer.resume();
    return new Response(null, { status, statusText, headers });
  }
  const decoded = await decode(answer, headers.get("content-encoding") ?? "");
  const body: NodeStream<Uint8Array> = Readable.toWeb(decoded);
  return new Response(body as ReadableStream<Uint8Array>, { status, statusText, headers });
}

/** brig asks for no compression, but some gateways compress whatever they send. */
async function decode(answer: IncomingMessage, encodings: string): Promise<Readable> {
  const applied = encodings
    .toLowerCase()
    .split(/\s*,\s*/)
    .filter((name) => !["", "identity"].includes(name));
  if (applied.length === 0) return answer;
  // Loaded only now, since that takes longer than a small request.
  const zlib = await import("node:zlib");
  const decoders = applied.toReversed().map((name) => decoderOf(name, zlib));
  // An error also ends the last stream, from which it is read.
  return decoders.reduce<Readable>((from, to) => pipeline(from, to, () => undefined), answer);
}

function decoderOf(
  encoding: string,
  { createBrotliDecompress, createInflate, createUnzip }: typeof zlib,
): Duplex {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return createUnzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      throw unusableResponse(
        `the endpoint answered in the encoding ${encoding}, which was not asked for`,
        "switch off the compression of answers at the endpoint, or in the gateway before it",
      );
  }
}
