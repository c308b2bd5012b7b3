import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { hasToken } from "../../lib/http/bearer-token.js";
import { listenOnLoopback } from "../../lib/http/loopback.js";
import { Connection, MAX_MESSAGE_BYTES } from "./connection.js";
import type { CommonOptions } from "./sandbox-set.js";
import { SessionList } from "./session-list.js";

export interface WebSocketService {
  /** 0 for any that is free. */
  port: number;
  /** Token that clients send as `Authorization: Bearer TOKEN`. */
  token: string;
  sandbox: CommonOptions;
  directory: string;
  /** Aborting ends the service. */
  signal: AbortSignal;
  /** Called once, with the address that clients connect to. */
  onListening: (url: string) => void;
}

/** While a client has more unread output than this, its processes cannot write any more. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** Serves any number of clients on loopback until the signal aborts; rejects with its reason when everything that they ran has ended. */
export async function serveWebSocket(service: WebSocketService): Promise<never> {
  const { sandbox, directory, signal } = service;
  const sessions = new SessionList({ sandbox, directory, isResumable: true });
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    clientTracking: true,
  });
  const server = createServer((_, response) => {
    response.writeHead(426, { "content-type": "text/plain" }).end("this is a WebSocket service\n");
  });
  server.on("upgrade", (request, socket: Duplex, head) => {
    const refusal = refusalOf(request, service.token);
    if (refusal !== null) return refuseUpgrade(socket, refusal);
    sockets.handleUpgrade(request, socket, head, (client) => serveClient(client, sessions));
  });
  try {
    service.onListening(`ws://${await listenOnLoopback(server, service.port)}`);
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason;
  } finally {
    for (const client of sockets.clients) client.terminate();
    server.close();
    server.closeAllConnections();
    await sessions.close();
  }
}

function serveClient(client: WebSocket, sessions: SessionList): void {
  const connection = new Connection(sessions, (text) => sendTo(client, text));
  client.on("message", (data: RawData, isBinary) => {
    if (isBinary) connection.refuse("binary messages are not understood");
    else connection.receive(text(data));
  });
  // A message that is too long, or no WebSocket any more: the library closes the connection and says why to the client.
  client.on("error", () => undefined);
  client.on("close", () => connection.close());
}

/** Resolves at once as long as the client keeps up. */
async function sendTo(client: WebSocket, text: string): Promise<void> {
  const isBehind = client.bufferedAmount > MAX_WAITING_BYTES;
  await new Promise<void>((resolve) => {
    client.send(text, () => resolve());
    if (!isBehind) resolve();
  });
}

function text(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString();
}

interface Refusal {
  status: string;
  reason: string;
}

function refusalOf({ headers }: IncomingMessage, token: string): Refusal | null {
  // A page in a browser may reach loopback, and has an origin; Codex has none.
  if (headers.origin !== undefined) return { status: "403 Forbidden", reason: "browsers are not served" };
  if (hasToken(headers, token)) return null;
  return { status: "401 Unauthorized", reason: "the token is missing or wrong: set auth_bearer_token" };
}

function refuseUpgrade(socket: Duplex, { status, reason }: Refusal): void {
  socket.on("error", () => undefined);
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\ncontent-length: ${reason.length + 1}\r\nconnection: close\r\n\r\n${reason}\n`,
  );
}
