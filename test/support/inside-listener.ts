import { once } from "node:events";
import type { Readable } from "node:stream";
import type { InsideConnection } from "../../src/sandbox/egress/inside-network.js";
import type { SandboxNetwork } from "../../src/sandbox/network/sandbox-network.js";

export const address = "127.0.0.1";

/** Listens on a free port inside, and hands out the connections in the order of their arrival. */
export async function listenInside(network: SandboxNetwork, port: number) {
  const arrived: InsideConnection[] = [];
  const waiters: ((connection: InsideConnection) => void)[] = [];
  const listener = await network.listen({ address, port }, (connection) => {
    const waiter = waiters.shift();
    if (waiter) waiter(connection);
    else arrived.push(connection);
  });
  return {
    listener,
    next: async () =>
      arrived.shift() ?? (await new Promise<InsideConnection>((resolve) => waiters.push(resolve))),
    get waiting() {
      return arrived.length;
    },
  };
}

/** As `text` of node:stream/consumers, which would also end the other direction. */
export async function readText(stream: Readable): Promise<string> {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  await once(stream, "end");
  return Buffer.concat(pieces).toString();
}

/** What python3 runs inside: `s` is a socket that is connected to the port. */
export const connected = (port: number, script: string) => [
  "python3",
  "-c",
  `import socket, sys, os, time\ns = socket.create_connection(("${address}", ${port}))\n${script}`,
];
