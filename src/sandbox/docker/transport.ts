import http, { type ClientRequest, type IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { Endpoint } from "./endpoint.js";
import { RefusedRequest } from "./engine-failure.js";
import { SharedBufferAgent, shareBufferOf } from "./shared-buffer-agent.js";

/** Field names of `query` and `body` are the Engine API's own. */
interface ApiRequest {
  method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** The path without the version prefix, e.g. `/containers/create`. */
  path: string;
  /** Default: the API version of the connection. Podman's own API has other versions than Docker's. */
  version?: string | undefined;
  /** Objects are sent as JSON, as the API expects its filters and labels. */
  query?: Record<string, unknown> | undefined;
  body?: object | undefined;
  upload?: Readable | undefined;
}

/** Sends requests to one engine. An abort of the signal ends a request with the signal's reason. */
export interface Transport {
  json(request: ApiRequest, signal: AbortSignal): Promise<unknown>;
  /** Resolves with the headers of the reply, whose names are in lower case. */
  headers(request: ApiRequest, signal: AbortSignal): Promise<http.IncomingHttpHeaders>;
  /** Resolves while the body of the reply is still arriving. */
  stream(request: ApiRequest, signal: AbortSignal): Promise<Readable>;
  /**
   * Resolves with the socket once the engine has switched it to raw bytes; `end()` closes only our side. The
   * bytes of a data event are overwritten after it, so copy them to keep them. The signal no longer affects
   * the socket.
   */
  upgrade(request: ApiRequest, signal: AbortSignal): Promise<Duplex>;
}

/** Generous: an engine with thousands of containers answers with a few megabytes. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;

export function openTransport(
  endpoint: Endpoint,
  { apiVersion }: { apiVersion?: string | undefined } = {},
): Transport {
  const open = opener(endpoint, apiVersion === undefined ? "" : `/v${apiVersion}`);
  const accepted = async (request: ApiRequest, signal: AbortSignal) => {
    const answer = await answered(open, request, signal);
    if (isSuccess(answer)) return answer;
    throw new RefusedRequest(answer.statusCode ?? 0, await readWhole(answer, signal));
  };
  const stream: Transport["stream"] = accepted;
  return {
    stream,
    async headers(request, signal) {
      const answer = await accepted(request, signal);
      answer.resume();
      return answer.headers;
    },
    async json(request, signal) {
      const reply = await readWhole(await stream(request, signal), signal);
      // Podman may send an empty line where Docker sends no body.
      return reply.trim() === "" ? null : JSON.parse(reply);
    },
    upgrade: (request, signal) => upgraded(open, request, signal),
  };
}

type Open = (request: ApiRequest, headers?: http.OutgoingHttpHeaders) => ClientRequest;

/** Connections are not reused, so a restarted engine never shows as a reset connection. */
function opener(endpoint: Endpoint, prefix: string): Open {
  const isSecure = endpoint.kind === "tcp" && endpoint.tls !== null;
  // There is no name to verify if TLS is not used, and Node would take milliseconds to look for one.
  const plain = { servername: "" };
  const where =
    endpoint.kind === "unix"
      ? { socketPath: endpoint.socketPath, ...plain }
      : { host: endpoint.host, port: endpoint.port, ...(endpoint.tls ?? plain) };
  // Loaded on demand: it is slow, and most engines do not use TLS.
  const { Agent, request: send } = isSecure ? process.getBuiltinModule("node:https") : http;
  const agent = isSecure ? new Agent() : new SharedBufferAgent();
  return ({ method, path, version, query, body, upload }, more = {}) => {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const type = upload ? "application/tar" : "application/json";
    const request = send({
      ...where,
      agent,
      method,
      path: `${version === undefined ? prefix : `/v${version}`}${path}${queryString(query)}`,
      headers: { ...(upload || json ? { "content-type": type } : {}), ...more },
    });
    if (upload) upload.on("error", (error) => request.destroy(error)).pipe(request);
    else request.end(json);
    return request;
  };
}

function queryString(query: Record<string, unknown> = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  if (pairs.length === 0) return "";
  const texts = pairs.map(([name, value]): [string, string] => [
    name,
    typeof value === "object" ? JSON.stringify(value) : String(value),
  ]);
  return `?${new URLSearchParams(texts)}`;
}

/** Resolves with the head of the response. An abort also ends its body. */
function answered(open: Open, request: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = open(request);
    const release = breakOffAt(signal, (reason) => {
      sent.destroy();
      reject(reason);
    });
    sent.once("response", (answer) => {
      const letGo = breakOffAt(signal, (reason) => answer.destroy(reason));
      answer.once("close", letGo);
      release();
      resolve(answer);
    });
    // After the response has begun, errors belong to its body.
    sent.on("error", (error) => {
      release();
      reject(error);
    });
  });
}

async function upgraded(open: Open, request: ApiRequest, signal: AbortSignal): Promise<Duplex> {
  return await new Promise((resolve, reject) => {
    const sent = open(request, { connection: "Upgrade", upgrade: "tcp" });
    const release = breakOffAt(signal, (reason) => {
      sent.destroy();
      reject(reason);
    });
    sent.once("upgrade", (_, socket, head) => {
      release();
      socket.unshift(head);
      shareBufferOf(socket);
      resolve(socket);
    });
    sent.once("response", (answer) => {
      const refuse = (words: string) => reject(new RefusedRequest(answer.statusCode ?? 0, words));
      readWhole(answer, signal).then(refuse, reject).finally(release);
    });
    sent.on("error", (error) => {
      release();
      reject(error);
    });
  });
}

/** Returns a function that removes the listener. */
function breakOffAt(signal: AbortSignal, end: (reason: Error) => void): () => void {
  const abort = () => end(signal.reason);
  if (signal.aborted) {
    abort();
    return () => undefined;
  }
  signal.addEventListener("abort", abort, { once: true });
  return () => signal.removeEventListener("abort", abort);
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return (statusCode >= 200 && statusCode < 300) || statusCode === 304;
}

async function readWhole(reply: Readable, signal: AbortSignal): Promise<string> {
  const whole = await readAtMost(reply, MAX_REPLY_BYTES).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
  if (whole === null) throw new SyntaxError(`a reply of more than ${MAX_REPLY_BYTES} bytes`);
  return whole.toString();
}

/** Null if the reply has more bytes than this. */
export async function readAtMost(reply: Readable, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of reply as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
