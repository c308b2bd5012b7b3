import type { Server } from "node:http";
import { isIPv6, type Socket } from "node:net";
import { busy } from "./refusal.js";

export interface ConnectionLimits {
  /** At the same time. */
  max: number;
  /** Of these, for one client. */
  maxPerClient: () => number;
}

interface Connection {
  socket: Socket;
  /** Whose token it has shown; null before that. */
  client: string | null;
}

/**
 * The connections to a server. When there are too many, the oldest that has shown no token gives way to the next one: whoever opens many and
 * sends nothing, or never ends a handshake, only takes the places of his own kind.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** In the order in which they came. */
  readonly #open = new Map<string, Connection>();
  readonly #unproved = new Set<string>();
  readonly #ofClients = new Map<string, number>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  watch(server: Server): void {
    server.on("connection", (socket: Socket) => {
      const key = keyOf(socket);
      // What is no upgrade after all comes a second time, and through a socket of this machine nobody is told apart.
      if (key !== null && !this.#open.has(key)) this.#add(key, socket);
    });
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** Notes that the connection is the client's. Error: a refusal with 429 if it has too many. */
  proved(socket: Socket, client: string): void {
    const key = keyOf(socket);
    const connection = key === null ? undefined : this.#open.get(key);
    if (key === null || connection === undefined || connection.client === client) return;
    const count = this.#ofClients.get(client) ?? 0;
    if (count >= this.#limits.maxPerClient())
      throw busy(`this client has ${count} connections already`, { status: 429, retrySeconds: 1 });
    this.#forget(key, connection);
    connection.client = client;
    this.#ofClients.set(client, count + 1);
  }

  #add(key: string, socket: Socket): void {
    const connection: Connection = { socket, client: null };
    this.#open.set(key, connection);
    this.#unproved.add(key);
    socket.once("close", () => {
      this.#open.delete(key);
      this.#forget(key, connection);
    });
    if (this.#open.size <= this.#limits.max) return;
    const [oldest = key] = this.#unproved;
    this.#open.get(oldest)?.socket.destroy();
  }

  #forget(key: string, { client }: Connection): void {
    this.#unproved.delete(key);
    if (client === null) return;
    const left = (this.#ofClients.get(client) ?? 0) - 1;
    if (left > 0) this.#ofClients.set(client, left);
    else this.#ofClients.delete(client);
  }
}

/** The same for a connection and for the TLS on it. Null for a socket of this machine, and once it is closed. */
function keyOf({ remoteAddress, remotePort }: Socket): string | null {
  return remoteAddress === undefined ? null : `${remoteAddress} ${remotePort}`;
}

/** Who is at the other end: an address, or the network of an IPv6 address, of which somebody usually has all. */
export function addressOf({ remoteAddress }: Socket): string {
  if (remoteAddress === undefined) return "local";
  const address = remoteAddress.replace(/^::ffff:(?=[0-9.]+$)/, "");
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head.split(":");
  const after = tail === undefined || tail === "" ? 0 : tail.split(":").length;
  const zeros = tail === undefined ? 0 : 8 - groups.length - after;
  const all = [...groups, ...new Array<string>(zeros).fill("0")];
  return `${all.slice(0, 4).join(":")}::/64`;
}
