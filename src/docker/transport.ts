import http from "node:http";
import https from "node:https";
import type { Duplex, Readable } from "node:stream";
import type Docker from "dockerode";
import type { Endpoint } from "./endpoint.js";

/** One request to the Engine API. Field names of `query` and `body` are the API's own. */
export interface ApiRequest {
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
  /** Resolves with the socket itself once the engine has switched it to raw bytes; `end()` closes only our half. */
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
  isStream: boolean;
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
    json: (request, signal) => dial(modem, request, { signal }),
    stream: (request, signal) => dial<Readable>(modem, request, { signal, isStream: true }),
    upgrade: (request, signal) =>
      untilSettled(signal, (own) =>
        dial<Duplex>(modem, request, { signal: own, isStream: true, hijack: true }),
      ),
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
    return { ...unset, protocol: "http", socketPath: endpoint.socketPath, agent: new http.Agent() };
  }
  const { host, port, tls } = endpoint;
  if (tls === null) return { ...unset, protocol: "http", host, port, agent: new http.Agent() };
  return { ...unset, ...tls, protocol: "https", host, port, agent: new https.Agent() };
}

/** `_query` and `_body` keep docker-modem from sending the whole body a second time in the URL. */
function dial<Reply>(
  modem: Modem,
  { method, path, query = {}, body = {}, upload }: ApiRequest,
  { signal, isStream = false, hijack = false }: { signal: AbortSignal; isStream?: boolean; hijack?: boolean },
): Promise<Reply> {
  const options: DialOptions = {
    method,
    path: `${path}?`,
    options: { _query: query, _body: body },
    file: upload,
    isStream,
    hijack,
    openStdin: hijack,
    abortSignal: signal,
    statusCodes: successCodes,
  };
  return new Promise((resolve, reject) => {
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
