import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { type WebSocket, WebSocketServer } from "ws";
import type { AuditLog } from "../audit-log.js";
import { type Route, type RouteName, routes } from "../wire/routes.js";
import { ClientSocket, CloseCode, MAX_FRAME_BYTES } from "./client-socket.js";
import type { MemoryShare } from "./memory-budget.js";
import { notFound, refusedAnswer, refuseOnSocket } from "./refusal.js";
import type { Answer } from "./response.js";
import type { ServedClient } from "./served-client.js";

/** A request to make the connection a WebSocket, whose path is known. */
interface UpgradeRequest {
  name: RouteName;
  client: ServedClient;
  incoming: IncomingMessage;
  /** The parts of the path. */
  parts: { id: string; process: string };
  /** By name, all values in order. */
  query: Record<string, string[]>;
  memory: MemoryShare;
  signal: AbortSignal;
}

export interface UpgradesOptions {
  /** Finds out who asks. Errors: refusals. */
  check: (incoming: IncomingMessage) => ServedClient;
  /** Errors: refusals. */
  answer: (request: UpgradeRequest) => Promise<Answer>;
  /** Takes a connection that is to become something else than a WebSocket. False for one that it does not know. Default: none. */
  takeOther?: ((incoming: IncomingMessage, socket: Duplex, head: Buffer) => boolean) | undefined;
  /** Resolves when a WebSocket of another protocol has ended, or was refused; undefined for one that is none of another. */
  upgradeOther: (incoming: IncomingMessage, socket: Duplex) => Promise<void> | undefined;
  share: (client: ServedClient) => MemoryShare;
  /** Where it is noted who has asked for what. Default: nowhere. */
  audit?: AuditLog | undefined;
  unreadMs: number;
  /** Called for an error that is a fault of brig. */
  onFault: (error: unknown) => void;
}

/** What a socket keeps: a frame of the client in pieces, and joined. What is sent to it is small. */
const SOCKET_BYTES = 2 * MAX_FRAME_BYTES;
/** How long a client has to answer that its socket is closed, when the service ends. */
const LAST_FRAMES_MS = 1000;

/** The WebSockets of a server. Requests to upgrade to anything else are answered as if they had not asked for that. */
export class Upgrades {
  readonly #options: UpgradesOptions;
  readonly #server: Server;
  readonly #others = new Set<Duplex>();
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    maxPayload: MAX_FRAME_BYTES,
  });

  constructor(server: Server, options: UpgradesOptions) {
    this.#server = server;
    this.#options = options;
    server.on("upgrade", (incoming, socket: Duplex, head: Buffer) => {
      socket.on("error", () => undefined);
      if (/^websocket$/i.test(incoming.headers.upgrade ?? "")) void this.#upgrade(incoming, socket, head);
      else if (options.takeOther?.(incoming, socket, head) !== true)
        this.#answerPlainly(incoming, socket, head);
    });
  }

  /** Closes all sockets. Resolves when they are closed. */
  async close(): Promise<void> {
    const { clients } = this.#sockets;
    for (const socket of this.#others) socket.destroy();
    const closing = [...clients].map(async (client) => {
      client.close(CloseCode.serviceEnds, "the service ends");
      const timer = setTimeout(() => client.terminate(), LAST_FRAMES_MS);
      await closeOf(client);
      clearTimeout(timer);
    });
    await Promise.all(closing);
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const audited = this.#options.audit?.watchUpgrade(incoming, socket);
    const gone = new AbortController();
    socket.once("close", () => gone.abort(new Error("the client has disconnected")));
    try {
      if (head.length > 0) socket.unshift(head);
      const other = this.#options.upgradeOther(incoming, socket);
      if (other !== undefined) {
        this.#others.add(socket);
        socket.once("close", () => this.#others.delete(socket));
        return await other;
      }
      const found = requestOf(incoming);
      const client = this.#options.check(incoming);
      using memory = this.#options.share(client);
      const request = { ...found, client, memory, signal: gone.signal };
      const answer = await this.#options.answer(request);
      if (answer.kind !== "socket") throw notFound();
      memory.take(SOCKET_BYTES);
      const opened = await new Promise<WebSocket | null>((resolve) => {
        // The library itself answers a request that lacks something of the protocol, and closes the connection.
        socket.once("close", () => resolve(null));
        this.#sockets.handleUpgrade(incoming, socket, Buffer.alloc(0), resolve);
      });
      audited?.answered(opened === null ? 400 : 101);
      if (opened !== null) await this.#serve(opened, answer.serve);
    } catch (error) {
      audited?.answered(refusedAnswer(error).status);
      this.#refuse(error, socket);
    }
  }

  async #serve(client: WebSocket, serve: Extract<Answer, { kind: "socket" }>["serve"]): Promise<void> {
    const socket = new ClientSocket(client, this.#options);
    const closed = closeOf(client);
    try {
      await serve(socket);
      socket.close(CloseCode.done);
    } catch (error) {
      socket.fail(error);
    }
    await closed;
  }

  #refuse(error: unknown, socket: Duplex): void {
    const answer = refusedAnswer(error);
    if (answer.status === 500) this.#options.onFault(error);
    refuseOnSocket(socket, answer, answer.body);
  }

  /**
   * Some clients ask for HTTP/2 in every first request, and go on if they do not get it. The server gets the request once more,
   * without the question.
   */
  #answerPlainly(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { method, url, httpVersion, rawHeaders } = incoming;
    const lines = [`${method} ${url} HTTP/${httpVersion}`];
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
      if (/^connection$/i.test(name))
        lines.push(`${name}: ${value.replaceAll(/upgrade|http2-settings/gi, "")}`);
      else if (!/^(?:upgrade|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
    }
    socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
    // On a socket with TLS there is no second one to be spoken.
    this.#server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
  }
}

async function closeOf(client: WebSocket): Promise<void> {
  if (client.readyState === client.CLOSED) return;
  await new Promise<void>((resolve) => client.once("close", () => resolve()));
}

const upgraded = Object.entries<Route>(routes)
  .filter(([, { answer }]) => answer.status === 101)
  .map(([name, { path }]) => ({
    name: name as RouteName,
    pattern: new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, "(?<$1>[A-Za-z0-9_-]{1,64})")}$`),
  }));

/** Error: a refusal with 404. */
function requestOf(incoming: IncomingMessage): Omit<UpgradeRequest, "client" | "memory" | "signal"> {
  const [path = "", ...rest] = `${incoming.url}`.split("?");
  for (const { name, pattern } of upgraded) {
    const groups = pattern.exec(path)?.groups;
    if (incoming.method !== "GET" || groups === undefined) continue;
    const { id = "", process = "" } = groups;
    return { name, incoming, parts: { id, process }, query: queriesOf(rest.join("?")) };
  }
  throw notFound();
}

function queriesOf(text: string): Record<string, string[]> {
  const parameters = new URLSearchParams(text);
  return Object.fromEntries([...new Set(parameters.keys())].map((name) => [name, parameters.getAll(name)]));
}
