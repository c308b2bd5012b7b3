import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer, type ServerOptions as TlsOptions } from "node:https";
import type { Socket } from "node:net";
import { getRequestListener, type HttpBindings, RequestError } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";

/** What an application gets of each request besides the request itself. */
export interface Served {
  Bindings: HttpBindings;
}

/** All times are in milliseconds; the defaults are those of Node. */
export interface WebServerLimits {
  maxConnections: number;
  /** How long the head of a request may take to arrive. */
  headMs?: number;
  /** How long a whole request may take to arrive. */
  requestMs?: number;
  /** Requests for which `requestMs` does not count: whoever reads their bodies ends those that stop. Default: none. */
  isLong?: (incoming: IncomingMessage) => boolean;
  /** How long a client may leave an answer unread. Default: forever. */
  unreadMs?: number;
  /** How long a connection may be idle between two requests. */
  keepAliveMs?: number;
}

/** When a service ends, how long the rest of the answers may take to reach the clients. */
const LAST_ANSWERS_MS = 1000;

/** What a route returns that writes its answer to `outgoing` itself. */
export const ANSWERS_ITSELF: Response = RESPONSE_ALREADY_SENT;

/** An application whose routes match the path as the client has sent it, and not as a URL, which would resolve `..` and another host. */
export function openApp(): Hono<Served> {
  return new Hono<Served>({ getPath: (_, options) => `${options?.env?.incoming.url}`.split("?", 1).join() });
}

/** With TLS, the server speaks nothing else. */
export function openWebServer(
  app: Hono<Served>,
  { maxConnections, headMs, requestMs, isLong, unreadMs, keepAliveMs }: WebServerLimits,
  tls?: TlsOptions,
): Server {
  const answer = async (request: Request, env: HttpBindings) =>
    inTime(await app.fetch(request, env), env.outgoing, unreadMs);
  const options = {
    headersTimeout: headMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: headMs === undefined ? undefined : Math.min(1000, headMs),
    keepAliveTimeout: keepAliveMs,
  };
  const latest = new WeakMap<Socket, { incoming: IncomingMessage; outgoing: ServerResponse }>();
  const onRequest: RequestListener = (incoming, outgoing) => {
    outgoing.on("error", () => undefined);
    if (isLong !== undefined) latest.set(incoming.socket, { incoming, outgoing });
    const listener = getRequestListener((request, env) => answer(request, env as HttpBindings), {
      ...{ hostname: "localhost", overrideGlobalObjects: false, autoCleanupIncoming: false },
      // A path or a Host header that makes no URL is refused like any other, which the application reads from `incoming`.
      errorHandler: (error) =>
        error instanceof RequestError
          ? answer(new Request("http://localhost"), { incoming, outgoing })
          : new Response(null, { status: 500 }),
    });
    void listener(incoming, outgoing);
  };
  const server =
    tls === undefined
      ? createServer(options, onRequest)
      : createTlsServer({ ...options, ...tls, handshakeTimeout: headMs }, onRequest);
  if (isLong !== undefined)
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      const request = latest.get(socket);
      const isLate = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
      if (isLate && request?.incoming.complete === false && isLong(request.incoming)) return;
      refuseBadRequest(error, socket, request?.outgoing);
    });
  server.maxConnections = maxConnections;
  return server;
}

/** As Node itself does where nobody listens for these errors. */
function refuseBadRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  outgoing: ServerResponse | undefined,
): void {
  const status = badRequests[error.code ?? ""] ?? "400 Bad Request";
  const isAnswering = outgoing?.headersSent === true && !outgoing.writableFinished;
  if (socket.writable && !isAnswering) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  socket.destroy(error);
}

const badRequests: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/**
 * Stops listening. Resolves when all connections have ended; they get a moment to send what they have begun
 * to send.
 */
export async function endOf(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_MS);
  await closed;
  clearTimeout(timer);
}

/**
 * Resolves when the answer is sent or the client has gone, also if that was earlier, to whether all of it was sent. That is asked at
 * once: what ends the answer afterwards makes it look as if it had been.
 */
export async function closeOf(outgoing: ServerResponse): Promise<boolean> {
  if (outgoing.closed) return outgoing.writableFinished;
  return await new Promise((resolve) => outgoing.once("close", () => resolve(outgoing.writableFinished)));
}

/** Sends a whole answer; what it returns tells hono so. Saves the 0.2 ms that the stream of a `Response` takes. */
export function sendWhole(
  outgoing: ServerResponse,
  { status, headers, bytes }: { status: number; headers?: OutgoingHttpHeaders; bytes?: Uint8Array },
): Response {
  outgoing.writeHead(status, { ...headers, ...(bytes && { "content-length": bytes.length }) }).end(bytes);
  return RESPONSE_ALREADY_SENT;
}

/** The answer, whose client is disconnected if it reads nothing for so long. */
function inTime(answer: Response, outgoing: ServerResponse, unreadMs: number | undefined): Response {
  if (unreadMs === undefined) return answer;
  let timer: NodeJS.Timeout | undefined;
  const giveTime = () => {
    if (!outgoing.closed) timer = setTimeout(() => outgoing.destroy(), unreadMs);
  };
  outgoing.once("close", () => clearTimeout(timer));
  if (answer.body === null) {
    giveTime();
    return answer;
  }
  const reader = answer.body.getReader();
  // It is asked for the next piece once the client has read enough of those before.
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(timer);
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch {
          return void outgoing.destroy();
        }
        giveTime();
      },
      cancel: async (reason) => await reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, answer);
}
