import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BrigError, isBrigError } from "../../errors.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { join, reset } from "../egress/join.js";
import type { ForwardedPort, ForwardOptions } from "../sandbox-types.js";
import { SandboxNetwork } from "./sandbox-network.js";

const HOST = "127.0.0.1";
/** A server that listens on `localhost` may have chosen either. */
const INSIDE = ["127.0.0.1", "::1"];
const DEFAULT_WAIT_MS = 5000;
const RETRY_MS = 100;

/**
 * Listens on a port of this machine's 127.0.0.1, and connects each connection to the port in the sandbox. Errors:
 * `usage.invalid`, `sandbox.port-in-use`, `sandbox.port-failed`, `sandbox.gone`.
 */
export async function forwardPort(
  link: RunnerLink,
  port: number,
  options: ForwardOptions,
): Promise<ForwardedPort> {
  const { hostPort = 0, waitForServerMs = DEFAULT_WAIT_MS } = options;
  requirePort(port, { least: 1 });
  requirePort(hostPort, { least: 0 });
  await link.ping();
  const network = new SandboxNetwork(link);
  const closed = new AbortController();
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    void connect(socket, { network, port, waitForServerMs, signal: closed.signal });
  });
  await listen(server, hostPort);
  // The program may end although the port is still open; the sandbox keeps it from ending before.
  server.unref();
  const close = async () => {
    closed.abort();
    if (!server.listening) return;
    const isClosed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await isClosed;
  };
  const own = (server.address() as AddressInfo).port;
  return { sandboxPort: port, port: own, url: `http://${HOST}:${own}`, close, [Symbol.asyncDispose]: close };
}

function requirePort(port: number, { least }: { least: number }): void {
  if (Number.isInteger(port) && port >= least && port <= 0xffff) return;
  throw new BrigError(`${String(port)} is not a port`, {
    code: "usage.invalid",
    hint: `a port is a whole number from ${least} to 65535`,
  });
}

async function listen(server: Server, port: number): Promise<void> {
  try {
    server.listen({ host: HOST, port, exclusive: true });
    await once(server, "listening");
  } catch (cause) {
    const errno = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
    const isTaken = errno === "EADDRINUSE";
    throw new BrigError(
      isTaken
        ? `another program on this machine listens on port ${port} of ${HOST}`
        : `port ${port} of this machine's ${HOST} cannot be listened on: ${errno}`,
      {
        code: isTaken ? "sandbox.port-in-use" : "sandbox.port-failed",
        hint: "choose another port, or 0 for any that is free",
        errno,
        cause,
      },
    );
  }
}

/**
 * Connects once to a server in the sandbox, on whichever address of the loopback it listens. Errors: `sandbox.port-failed`, with errno
 * ECONNREFUSED if nothing listens there; `sandbox.gone`; `usage.invalid`; the signal's reason after an abort.
 */
export async function connectPort(link: RunnerLink, port: number, signal: AbortSignal): Promise<Duplex> {
  requirePort(port, { least: 1 });
  return await connectInside(new SandboxNetwork(link), port, signal);
}

/** The error is that of the last address. */
async function connectInside(network: SandboxNetwork, port: number, signal: AbortSignal): Promise<Duplex> {
  for (const address of INSIDE.slice(0, -1)) {
    try {
      return await network.connect({ address, port }, { signal });
    } catch (error) {
      if (!isNotListening(error)) throw error;
    }
  }
  return await network.connect({ address: INSIDE.at(-1) ?? HOST, port }, { signal });
}

interface Target {
  network: SandboxNetwork;
  port: number;
  waitForServerMs: number;
  signal: AbortSignal;
}

/** Connects to the server inside. If there is none, resets the connection: an ordinary end would look like an answer. */
async function connect(outer: Socket, target: Target): Promise<void> {
  outer.on("error", () => undefined);
  try {
    const inner = await connectPatiently(outer, target);
    if (outer.destroyed) inner.destroy();
    else await join(inner, outer);
  } catch {
    reset(outer);
  }
}

/** A server may be about to start, as one that a command has just launched. */
async function connectPatiently(outer: Socket, target: Target): Promise<Duplex> {
  const { network, port, waitForServerMs, signal } = target;
  const giveUpAt = performance.now() + waitForServerMs;
  for (;;) {
    try {
      return await connectInside(network, port, signal);
    } catch (error) {
      if (!isNotListening(error) || performance.now() >= giveUpAt || outer.destroyed) throw error;
    }
    await sleep(RETRY_MS, undefined, { signal: sharedSignal(signal) });
  }
}

function isNotListening(error: unknown): boolean {
  return isBrigError(error, "sandbox.port-failed") && mayComeLater.has(error.errno);
}

/** EADDRNOTAVAIL: the sandbox has no IPv6. */
const mayComeLater: ReadonlySet<string | undefined> = new Set([
  "ECONNREFUSED",
  "EADDRNOTAVAIL",
  "EAFNOSUPPORT",
]);
