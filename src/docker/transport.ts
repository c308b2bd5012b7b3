import http from "node:http";
import https from "node:https";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import type { Endpoint } from "./endpoint.js";

/** One request to the Engine API. Field names of `query` and `body` are the API's own. */
interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Without the version prefix, e.g. `/containers/create`. */
  path: string;
  /** Values that are objects are sent as JSON, as the API wants its filters and labels. */
  query?: Record<string, unknown> | undefined;
  body?: object | undefined;
  /** A tar stream instead of a JSON body. */
  upload?: Readable | undefined;
}

/** Sends requests to one engine through docker-modem, the HTTP layer of dockerode. */
export interface Transport {
  /** Resolves with the parsed JSON reply. */
  json(request: ApiRequest, signal: AbortSignal): Promise<unknown>;
  /** Resolves with the reply's body while it is still arriving. */
  stream(request: ApiRequest, signal: AbortSignal): Promise<Readable>;
  /**
   * Resolves with the socket itself once the engine has switched it to raw bytes; `end()` closes only our half. The
   * bytes of a data event are lent until the event is over: who keeps them copies them.
   */
  upgrade(request: ApiRequest, signal: AbortSignal): Promise<Duplex>;
}

interface Modem {
  dial(options: DialOptions, callback: (error: unknown, reply: unknown) => void): void;
}

interface DialOptions {
  method: string;
  path: string;
  options: { _query: object; _body: object };
  file: Readable | undefined;
  isStream: true;
  hijack: boolean;
  openStdin: boolean;
  abortSignal: AbortSignal;
  statusCodes: Record<number, true>;
}

const successCodes = { 200: true, 201: true, 204: true, 304: true } as const;

export async function openTransport(
  endpoint: Endpoint,
  options: { apiVersion?: string | undefined } = {},
): Promise<Transport> {
  const { default: Dockerode } = await import("dockerode");
  const version = options.apiVersion === undefined ? undefined : `v${options.apiVersion}`;
  const modem: Modem = new Dockerode({ ...connection(endpoint), version }).modem;

  return {
    async json(request, signal) {
      const reply = await text(await dial<Readable>(modem, request, { signal }));
      return reply === "" ? null : JSON.parse(reply);
    },
    stream: (request, signal) => dial<Readable>(modem, request, { signal }),
    upgrade: (request, signal) =>
      untilSettled(signal, async (own) => {
        const stream = await dial<Duplex>(modem, request, { signal: own, hijack: true });
        upgraded.add(stream);
        return stream;
      }),
  };
}

/**
 * Every option is named, also the unused ones: docker-modem takes the rest from `DOCKER_HOST` on its own.
 * Connections are not reused, so that a restarted engine never shows as a reset one.
 */
function connection(endpoint: Endpoint): Docker.DockerOptions & { agent: http.Agent } {
  const unset = {
    host: undefined,
    port: undefined,
    socketPath: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
  };
  if (endpoint.kind === "unix") {
    return { ...unset, protocol: "http", socketPath: endpoint.socketPath, agent: new BorrowingAgent() };
  }
  const { host, port, tls } = endpoint;
  if (tls === null) return { ...unset, protocol: "http", host, port, agent: new BorrowingAgent() };
  return { ...unset, ...tls, protocol: "https", host, port, agent: new https.Agent() };
}

/** Marks a socket that has become a raw stream. */
const upgraded = new WeakSet<object>();
const READ_BYTES = 64 * 1024;

/**
 * Sockets that read into one buffer of their own. Node otherwise allocates 64 KiB for each read, and a gigabyte of
 * output grows the process by some 70 MB of garbage before it is collected. Once a socket is upgraded its data events
 * lend that buffer: it is overwritten after the event. Before, HTTP gets copies, since it keeps them.
 */
class BorrowingAgent extends http.Agent {
  override createConnection(options: NetConnectOpts): Socket {
    const socket: Socket = connect({
      ...options,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback(length: number, bytes: Uint8Array) {
          const data = Buffer.from(bytes.buffer, bytes.byteOffset, length);
          socket.emit("data", upgraded.has(socket) ? data : Buffer.from(data));
          return true;
        },
      },
    });
    return socket;
  }
}

/**
 * Always asks for the reply as a stream: when docker-modem collects a reply itself and the engine dies meanwhile, it
 * never says so. For the same reason an abort settles the call whatever docker-modem does. `_query` and `_body` keep it
 * from sending the whole body a second time in the URL.
 */
function dial<Reply>(
  modem: Modem,
  { method, path, query = {}, body = {}, upload }: ApiRequest,
  { signal, hijack = false }: { signal: AbortSignal; hijack?: boolean },
): Promise<Reply> {
  const options: DialOptions = {
    method,
    path: `${path}?`,
    options: { _query: query, _body: body },
    file: upload,
    isStream: true,
    hijack,
    openStdin: hijack,
    abortSignal: signal,
    statusCodes: successCodes,
  };
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    modem.dial(options, (error, reply) => (error ? reject(error) : resolve(reply as Reply)));
  });
}

/** Hands out a signal that follows `signal` only until the call settles: aborting a request also kills its upgraded socket. */
async function untilSettled<T>(signal: AbortSignal, run: (own: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const follow = () => own.abort(signal.reason);
  signal.addEventListener("abort", follow);
  try {
    signal.throwIfAborted();
    return await run(own.signal);
  } finally {
    signal.removeEventListener("abort", follow);
  }
}
