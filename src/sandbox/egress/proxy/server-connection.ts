import { Agent, type ClientRequest, request as openRequest, type RequestOptions } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Endpoint } from "../rules/decide.js";
import { isSameTarget } from "../rules/target.js";

/** Gives a request the connection that is there already, and keeps it afterwards. */
class AgentOfOne extends Agent {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#socket = socket;
  }

  override createConnection(): Socket {
    return this.#socket;
  }
}

/** An open connection to a server. */
export class ServerConnection {
  readonly socket: Socket;
  readonly endpoint: Endpoint;
  /** The entry of the allow-list by which it was opened. */
  readonly rule: string;
  /** Whether requests have been answered on it before the one that is sent now. */
  wasKept = false;
  readonly mayBeKept: boolean;
  readonly #agent: Agent | null;

  /** `mayBeKept`: another request may follow. Otherwise the server is told that there is only one. */
  constructor(
    socket: Socket,
    { endpoint, rule, mayBeKept }: { endpoint: Endpoint; rule: string; mayBeKept: boolean },
  ) {
    this.socket = socket;
    this.endpoint = endpoint;
    this.rule = rule;
    socket.on("timeout", () => socket.destroy());
    this.mayBeKept = mayBeKept;
    this.#agent = mayBeKept ? new AgentOfOne(socket) : null;
  }

  /** Null if Node refuses to send such a request. */
  request(options: RequestOptions): ClientRequest | null {
    try {
      const way =
        this.#agent === null
          ? { createConnection: () => this.socket }
          : { agent: this.#agent, ...FIXED_NAME };
      return openRequest({ ...options, ...way, setHost: false });
    } catch {
      return null;
    }
  }

  /** Resolves once the last answer has been read and the connection is free for another request, or when it is closed. */
  async settled(): Promise<void> {
    const { socket } = this;
    if (socket.closed || this.isFree) return;
    await new Promise<void>((resolve) => {
      const settle = () => {
        socket.off("free", settle).off("close", settle);
        // Node's agent has taken the connection back only after its own listener.
        setImmediate(resolve);
      };
      socket.on("free", settle).on("close", settle);
    });
  }

  /** False also if the server has sent something that it was not asked for. */
  get isFree(): boolean {
    const isIdle = Object.values(this.#agent?.freeSockets ?? {}).some((list) => list?.includes(this.socket));
    return isIdle && this.socket.writable && this.socket.readable && this.socket.readableLength === 0;
  }
}

/** Name by which the agent recognises its only connection. */
const FIXED_NAME = { host: "server", port: 1 };

/**
 * The connection to a server that a program's connection to the proxy has last used, for its next request to the same server.
 * It is never used for another program, and is closed with the program's connection.
 */
export class KeptConnection {
  #connection: ServerConnection | null = null;
  #isOver = false;

  constructor(inside: Duplex) {
    inside.once("close", () => {
      this.#isOver = true;
      this.#connection?.socket.destroy();
      this.#connection = null;
    });
  }

  keep(connection: ServerConnection): void {
    this.#connection?.socket.destroy();
    if (this.#isOver) connection.socket.destroy();
    else this.#connection = connection;
  }

  /** Takes the connection for a request to this endpoint; null if there is none, or if the server has closed it. */
  takeFor({ target, port }: Endpoint): ServerConnection | null {
    const kept = this.#connection;
    if (kept === null || kept.endpoint.port !== port || !isSameTarget(kept.endpoint.target, target))
      return null;
    this.#connection = null;
    if (!kept.isFree) {
      kept.socket.destroy();
      return null;
    }
    kept.wasKept = true;
    return kept;
  }
}
