import { ADDRESS_BYTES, FrameType } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { InsideAddress, InsideConnection, InsideListener } from "../egress/inside-network.js";
import { encodeUint32 } from "../process/spawn-request.js";
import { parseAddress } from "./address.js";
import { BoundSocket } from "./bound-socket.js";
import { callCallersCode } from "./callers-code.js";
import { SandboxConnection } from "./connection.js";

/** Channels that wait for connections to come, so that a connection does not wait for a round trip. */
const AHEAD = 16;
/** Further connections wait in the sandbox's kernel. */
const MOST_CONNECTIONS = 2048;

/** Takes the connections that programs in the sandbox make to one of its addresses. */
export class SandboxListener implements InsideListener {
  readonly #link: RunnerLink;
  readonly #socket: BoundSocket;
  readonly #onConnection: (connection: InsideConnection) => void;
  #waiting = 0;
  #open = 0;
  #isClosed = false;

  private constructor(
    link: RunnerLink,
    socket: BoundSocket,
    onConnection: (connection: InsideConnection) => void,
  ) {
    this.#link = link;
    this.#socket = socket;
    this.#onConnection = onConnection;
  }

  /** Errors: `sandbox.port-in-use`, `sandbox.port-failed`, `sandbox.gone`, `usage.invalid`. */
  static async open(
    link: RunnerLink,
    at: InsideAddress,
    onConnection: (connection: InsideConnection) => void,
  ): Promise<SandboxListener> {
    const socket = new BoundSocket(link, at);
    await socket.bound;
    const listener = new SandboxListener(link, socket, onConnection);
    listener.#fill();
    return listener;
  }

  /** Connections that were made before go on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#socket.close();
  }

  #fill(): void {
    const room = Math.min(AHEAD, MOST_CONNECTIONS - this.#open) - this.#waiting;
    for (let i = 0; i < room && !this.#isClosed && !this.#link.isOver; i++) this.#waitForOne();
  }

  #waitForOne(): void {
    let isConnected = false;
    this.#waiting++;
    const stream = new SandboxConnection(
      this.#link,
      { type: FrameType.accept, payload: encodeUint32(this.#socket.channel) },
      {
        onConnected: (payload) => {
          isConnected = true;
          this.#waiting--;
          this.#open++;
          this.#fill();
          this.#take({ to: parseAddress(payload, 0), from: parseAddress(payload, ADDRESS_BYTES), stream });
        },
        onOver: () => {
          if (isConnected) this.#open--;
          else this.#waiting--;
          if (isConnected) this.#fill();
        },
      },
    );
  }

  #take(connection: InsideConnection): void {
    if (this.#isClosed) connection.stream.destroy();
    else callCallersCode(() => this.#onConnection(connection));
  }
}
