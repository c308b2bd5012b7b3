import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { BrigError } from "../errors.js";
import { Connection, MAX_MESSAGE_BYTES } from "./connection.js";
import type { CommonOptions } from "./sandbox-set.js";
import { SessionList } from "./session-list.js";

export interface WebSocketService {
  /** 0 for any that is free. */
  port: number;
  /** What clients send as `Authorization: Bearer TOKEN`. */
  token: string;
  sandbox: CommonOptions;
  directory: string;
  /** Aborting ends the service. */
  signal: AbortSignal;
  /** Called once, with the address that clients connect to. */
  onListening: (url: string) => void;
}

const LOOPBACK = "127.0.0.1";
/** Output that a client has not taken yet: above this its processes wait. */
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
    await listen(server, service.port);
    service.onListening(`ws://${LOOPBACK}:${(server.address() as AddressInfo).port}`);
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason;
  } finally {
    for (const client of sockets.clients) client.terminate();
    server.close();
    server.closeAllConnections();
    await sessions.close();
  }
}

async function listen(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  try {
    server.listen(port, LOOPBACK);
    await once(server, "listening");
  } catch (cause) {
    throw new BrigError(`cannot listen on ${LOOPBACK}:${port}`, {
      code: "usage.invalid",
      hint: "choose another port, or 0 for any that is free",
      cause,
    });
  }
}

function serveClient(client: WebSocket, sessions: SessionList): void {
  const connection = new Connection(sessions, (text) => sendTo(client, text));
  let last = Promise.resolve();
  client.on("message", (data: RawData, isBinary) => {
    client.pause();
    last = last
      .then(() =>
        isBinary ? connection.refuse("binary messages are not understood") : connection.receive(text(data)),
      )
      .finally(() => client.resume());
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
  const given = /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];
  if (given !== undefined && isSame(given, token)) return null;
  return { status: "401 Unauthorized", reason: "the token is missing or wrong: set auth_bearer_token" };
}

/** Takes as long for a wrong token as for a right one. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

function refuseUpgrade(socket: Duplex, { status, reason }: Refusal): void {
  socket.on("error", () => undefined);
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\ncontent-length: ${reason.length + 1}\r\nconnection: close\r\n\r\n${reason}\n`,
  );
}
