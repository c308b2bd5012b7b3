import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from "node:http";
import { isIP, type Socket } from "node:net";
import { type Duplex, Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { dialProxy, dialThrough, type ProxyDialled } from "./dial-proxy.js";
import {
  authorizationHeader,
  type ConfiguredProxy,
  describeProxy,
  hostOf,
  type Proxies,
  type ProxyAddress,
  proxyFor,
} from "./proxies.js";

/**
 * `fetch`, through the proxy of the environment if there is one for the URL. Unlike `fetch`, a request through a proxy follows no
 * redirects and asks for no compression.
 */
export async function proxiedFetch(
  url: string | URL,
  init: RequestInit,
  proxies: Proxies,
): Promise<Response> {
  if (proxyFor(proxies, new URL(url)) === null) return await fetch(url, init);
  const wanted = new Request(url, init);
  const body = Buffer.from(await wanted.arrayBuffer());
  const { method, signal } = wanted;
  signal.throwIfAborted();
  const open = await requestOpener(new URL(url), {
    ...{ method, proxies, signal },
    headers: {
      ...Object.fromEntries(wanted.headers),
      ...((body.length > 0 || !["GET", "HEAD"].includes(method)) && {
        "content-length": String(body.length),
      }),
    },
  });
  return await new Promise((resolve, reject) => {
    const request = open();
    let answer: IncomingMessage | null = null;
    const breakOff = () => {
      answer?.destroy(signal.reason);
      reject(signal.reason);
    };
    signal.addEventListener("abort", breakOff, { once: true });
    request.once("response", (incoming) => {
      answer = incoming;
      incoming.once("close", () => signal.removeEventListener("abort", breakOff));
      try {
        resolve(responseOf(incoming));
      } catch (error) {
        request.destroy();
        reject(error);
      }
    });
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed without an answer")));
    request.end(body);
  });
}

const CONNECT_TIMEOUT_MS = 30_000;

export interface OpenOptions {
  method: string;
  headers: Readonly<Record<string, string>>;
  proxies: Proxies;
  /** Ends the request. */
  signal: AbortSignal;
  /** Also ends the attempt to reach the proxy. */
  silence?: AbortSignal | undefined;
}

/**
 * Returns what begins a request as Node's `http.request` does, through the proxy of the environment if there is one for the URL:
 * in a tunnel if the URL is https, and as a request for the URL otherwise. The request may fail at once, so that whoever begins
 * it has to listen for errors in the same moment.
 */
export async function requestOpener(
  url: URL,
  { method, headers, proxies, signal, silence }: OpenOptions,
): Promise<() => ClientRequest> {
  // Loading TLS takes ten milliseconds, and a server on this machine may not need it.
  const request = url.protocol === "https:" ? (await import("node:https")).request : requestHttp;
  const proxy = proxyFor(proxies, url);
  const options: RequestOptions = { method, headers: { ...headers }, signal };
  if (proxy === null) return () => request(url, options);
  const signals = silence === undefined ? [signal] : [signal, silence];
  const way = await throughProxy(url, { proxy, headers, signals });
  return () => request(url, { ...options, ...way });
}

interface Way {
  proxy: ConfiguredProxy;
  headers: Readonly<Record<string, string>>;
  signals: readonly AbortSignal[];
}

async function throughProxy(url: URL, { proxy, headers, signals }: Way): Promise<RequestOptions> {
  const { variable, address } = proxy;
  if (address === null)
    throw new Error(`${variable} of the environment is not the URL of a proxy that brig can use`);
  const dial = { timeoutMs: CONNECT_TIMEOUT_MS, signals };
  const named = { variable, address };
  const isTls = url.protocol === "https:";
  const [host, port] = [hostOf(url), url.port === "" ? (isTls ? 443 : 80) : Number(url.port)];
  if (isTls) {
    const { connect } = await import("node:tls");
    const open = async () => {
      const socket = connected(await dialThrough(address, { host, port }, dial), named);
      return connect({ socket, servername: isIP(host) === 0 ? host : "" });
    };
    return { createConnection: connecting(open) };
  }
  if (address.kind === "socks")
    return {
      createConnection: connecting(async () =>
        connected(await dialThrough(address, { host, port }, dial), named),
      ),
    };
  const [name, value] = authorizationHeader(address);
  return {
    path: `${url.origin}${url.pathname}${url.search}`,
    headers: { ...headers, ...(name !== undefined && { [name]: value }) },
    createConnection: connecting(async () => connected(await dialProxy(address, dial), named)),
  };
}

type CreateConnection = NonNullable<RequestOptions["createConnection"]>;

/** Node takes a connection that is made later, too. */
function connecting(open: () => Promise<Duplex>): CreateConnection {
  return (_, onMade) => {
    open().then(
      (socket) => onMade(null, socket),
      (error: unknown) => onMade(error as Error, undefined as never),
    );
    return undefined;
  };
}

function connected(
  dialled: ProxyDialled,
  { variable, address }: { variable: string; address: ProxyAddress },
): Socket {
  if (dialled.kind === "connected") return dialled.socket;
  const what = dialled.kind === "refused" ? `answered ${dialled.status}` : `cannot be used: ${dialled.errno}`;
  throw new Error(`the proxy of ${variable}, ${describeProxy(address)}, ${what}`);
}

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
