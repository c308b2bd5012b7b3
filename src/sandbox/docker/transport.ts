import { type IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import { RefusedRequest } from "./engine-failure.js";
import type { Modem } from "./modem.js";
import { shareBufferOf } from "./shared-buffer-agent.js";

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
  headers(request: ApiRequest, signal: AbortSignal): Promise<IncomingHttpHeaders>;
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
  modem: Modem,
  { apiVersion }: { apiVersion?: string | undefined } = {},
): Transport {
  const ask = async (request: ApiRequest, signal: AbortSignal, { hijack = false } = {}) => {
    const answer = await dialled(modem, { version: apiVersion, hijack, ...request }, signal);
    if (!(answer instanceof IncomingMessage)) return answer;
    answer.once(
      "close",
      breakOffAt(signal, (reason) => answer.destroy(reason)),
    );
    if (isSuccess(answer) && !hijack) return answer;
    throw new RefusedRequest(answer.statusCode ?? 0, await readWhole(answer, signal));
  };
  const stream = async (request: ApiRequest, signal: AbortSignal) =>
    (await ask(request, signal)) as IncomingMessage;
  return {
    stream,
    async headers(request, signal) {
      const answer = await stream(request, signal);
      answer.resume();
      return answer.headers;
    },
    async json(request, signal) {
      const reply = await readWhole(await stream(request, signal), signal);
      // Podman may send an empty line where Docker sends no body.
      return reply.trim() === "" ? null : JSON.parse(reply);
    },
    async upgrade(request, signal) {
      const socket = (await ask(request, signal, { hijack: true })) as Duplex;
      shareBufferOf(socket);
      return socket;
    },
  };
}

/** Without this, dockerode's modem would read the text of a refusal itself, however long. */
const everyStatus = Object.fromEntries(
  Array.from({ length: 500 }, (_, index) => [index + 100, true] as const),
);

/** Resolves with the beginning of the answer, or with the raw connection. An abort ends the request. */
function dialled(
  modem: Modem,
  { method, path, version, query, body = {}, upload, hijack }: ApiRequest & { hijack: boolean },
  signal: AbortSignal,
): Promise<IncomingMessage | Duplex> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new AbortController();
    const release = breakOffAt(signal, (reason) => {
      request.abort(reason);
      reject(reason);
    });
    modem.dial(
      {
        method,
        path: `${version === undefined ? "" : `/v${version}`}${path}${queryString(query)}`,
        options: { _query: {}, _body: body },
        file: upload,
        hijack,
        isStream: true,
        statusCodes: everyStatus,
        abortSignal: request.signal,
      },
      (error, answer) => {
        release();
        if (error) reject(error);
        else resolve(answer);
      },
    );
  });
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
