import type { IncomingMessage } from "node:http";
import { type Duplex, pipeline, type Readable } from "node:stream";
import type * as zlib from "node:zlib";
import { requestOpener, responseOf } from "../../../lib/proxy/proxied-fetch.js";
import type { Proxies } from "../../../lib/proxy/proxies.js";
import { unusableResponse } from "./model-failure.js";
import { noteRequestSent } from "./request-sent.js";

export interface JsonPost {
  headers: Readonly<Record<string, string>>;
  body: string;
  /** An abort ends the request, and also the response while its body is being read. */
  signal: AbortSignal;
  /** Aborts when the endpoint has been silent for too long, with the error that the caller then gets. */
  silence: AbortSignal;
  proxies: Proxies;
}

/**
 * Sends one request. Node's `fetch` is not used: it gives up after five minutes of silence, whatever is
 * configured, and takes long to load. The first use of `Response` loads it too, so that comes only after the
 * request has been sent. Redirects are not followed: they would send the credentials to another host.
 */
export async function postJson(
  url: URL,
  { headers, body, signal, silence, proxies }: JsonPost,
): Promise<Response> {
  const open = await requestOpener(url, { method: "POST", headers, signal, silence, proxies });
  return await new Promise((resolve, reject) => {
    const request = open();
    const breakOff = () => {
      request.destroy(silence.reason);
      reject(silence.reason);
    };
    if (silence.aborted) breakOff();
    else silence.addEventListener("abort", breakOff, { once: true });
    request.on("response", (answer) => {
      decode(answer)
        .then((content) => responseOf(answer, content))
        .then(resolve, (error: unknown) => {
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

/** brig asks for no compression, but some gateways compress whatever they send. */
async function decode(answer: IncomingMessage): Promise<Readable> {
  const applied = (answer.headers["content-encoding"] ?? "")
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
