import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type {
  ConnectionOwner,
  InsideAddress,
  InsideNetwork,
} from "../../src/sandbox/egress/inside-network.js";

/**
 * The network of a sandbox, played by real sockets on this machine's loopback: each address and port inside is
 * some free port here.
 */
export class LoopbackNetwork implements InsideNetwork {
  owner: ConnectionOwner | null = { channel: 7, pid: 42, program: "curl", callId: null };
  readonly #ports = new Map<string, number>();
  readonly #servers = new Set<Server>();
  readonly #sockets = new Set<Socket>();

  /** The port on 127.0.0.1 that stands for it. */
  portOf(at: InsideAddress): number {
    const port = this.#ports.get(keyOf(at));
    if (port === undefined) throw new Error(`nobody listens on ${keyOf(at)}`);
    return port;
  }

  listensOn(at: InsideAddress): boolean {
    return this.#ports.has(keyOf(at));
  }

  async listen(at: InsideAddress, onConnection: Parameters<InsideNetwork["listen"]>[1]) {
    const server = createServer({ allowHalfOpen: true }, (stream) => {
      this.#sockets.add(stream);
      stream.once("close", () => this.#sockets.delete(stream));
      const from = { address: stream.remoteAddress ?? "", port: stream.remotePort ?? 0 };
      onConnection({ to: at, from, stream });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#servers.add(server);
    this.#ports.set(keyOf(at), (server.address() as AddressInfo).port);
    return { close: async () => this.#stop(server) };
  }

  async receiveDatagrams(at: InsideAddress, onDatagram: Parameters<InsideNetwork["receiveDatagrams"]>[1]) {
    const socket = createSocket("udp4", (data, from) => {
      onDatagram(data, (answer) => socket.send(answer, from.port, from.address));
    });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    this.#ports.set(`udp ${keyOf(at)}`, socket.address().port);
    let isOpen = true;
    return {
      async close() {
        if (isOpen) socket.close();
        isOpen = false;
      },
    };
  }

  datagramPortOf(at: InsideAddress): number {
    return this.#ports.get(`udp ${keyOf(at)}`) ?? 0;
  }

  async ownerOf(): Promise<ConnectionOwner | null> {
    return this.owner;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  #stop(server: Server): void {
    server.close();
    this.#servers.delete(server);
  }
}

function keyOf({ address, port }: InsideAddress): string {
  return `${address}:${port}`;
}
