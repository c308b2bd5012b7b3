import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { vi } from "vitest";
import { PROXY_ADDRESS } from "../../src/sandbox/egress/addresses.js";
import type { EgressAttempt } from "../../src/sandbox/egress/attempt.js";
import type { Canary } from "../../src/sandbox/egress/canaries/new-canary.js";
import type { EgressLimits } from "../../src/sandbox/egress/gate.js";
import type { Inspection } from "../../src/sandbox/egress/inspection.js";
import { type Egress, openEgress } from "../../src/sandbox/egress/open-egress.js";
import type { UpstreamProxy } from "../../src/sandbox/egress/read-upstream.js";
import { LoopbackNetwork } from "./loopback-network.js";

interface PlaceOptions {
  hosts: readonly string[];
  /** What names stand for. Default: every name for 127.0.0.1. */
  resolve?: (name: string) => Promise<readonly string[]>;
  limits?: Partial<EgressLimits>;
  upstream?: UpstreamProxy | null;
  /** Rules for requests, and secrets. */
  inspection?: Inspection;
  canaries?: readonly Canary[];
}

/** Opens the egress of a sandbox that real sockets play, and closes it at the end of the block. */
export async function egressPlace({ hosts, resolve, limits, upstream, inspection, canaries }: PlaceOptions) {
  const network = new LoopbackNetwork();
  const attempts: EgressAttempt[] = [];
  const lookups: string[] = [];
  const sentCanaries: { name: string; host: string }[] = [];
  const egress: Egress = await openEgress(network, {
    hosts,
    limits,
    upstream,
    inspection,
    canaries,
    onCanary: ({ name, host }) => sentCanaries.push({ name, host }),
    onAttempt: (attempt) => attempts.push(attempt),
    resolve: async (name) => {
      lookups.push(name);
      return resolve === undefined ? ["127.0.0.1"] : await resolve(name);
    },
  });
  return {
    network,
    attempts,
    lookups,
    sentCanaries,
    egress,
    proxyPort: network.portOf(PROXY_ADDRESS),
    [Symbol.asyncDispose]: async () => await egress.close(),
  };
}

/** A connection to the port, and everything that comes back on it. */
export async function dialTo(
  port: number,
): Promise<{ socket: Socket; received: () => string; ended: Promise<"end" | "reset"> }> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  const ended = new Promise<"end" | "reset">((resolve) => {
    socket.once("end", () => resolve("end"));
    socket.once("error", () => resolve("reset"));
    socket.once("close", () => resolve("reset"));
  });
  await Promise.race([once(socket, "connect").catch(() => undefined), ended]);
  return { socket, received: () => text, ended };
}

/** A TCP server on a free port of 127.0.0.1, closed at the end of the block with all its connections. */
export async function tcpServer(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Tries until it throws nothing more, on a busy machine as well. */
export async function eventually<Result>(attempt: () => Result | Promise<Result>): Promise<Result> {
  return await vi.waitFor(attempt, { timeout: 20_000, interval: 5 });
}
