import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { dialProxy, dialThrough } from "../../lib/proxy/dial-proxy.js";
import { HOST_NAME, normalAddress } from "../policy/hosts.js";
import { errnoOrIo } from "./join.js";
import { isBypassed, type UpstreamProxy } from "./read-upstream.js";
import { decideAddress, type EgressRule, type Endpoint, type OwnAddresses } from "./rules/decide.js";
import type { Denial } from "./rules/denial.js";
import { scopeOf, type Target } from "./rules/target.js";

export type Dialled =
  /** `upstream`: the proxy that made the connection, or that waits for a request for a URL. */
  | { kind: "connected"; socket: Socket; upstream: UpstreamProxy | null }
  | { kind: "denied"; denial: Denial }
  | { kind: "failed"; errno: string };

export type Resolve = (name: string) => Promise<readonly string[]>;

interface DialOptions {
  rules: readonly EgressRule[];
  resolve: Resolve;
  ownAddresses: OwnAddresses;
  connectTimeoutMs: number;
  upstream: UpstreamProxy | null;
  /** The connection is for one request of plain HTTP, which a proxy wants as a URL and not in a tunnel. */
  isPlainHttp: boolean;
}

/**
 * Connects to a target that the rules allow by its name. Only now is the name looked up, and each address is
 * checked right before it is dialled, so that no second answer can replace a checked one.
 */
export async function dial(endpoint: Endpoint, options: DialOptions): Promise<Dialled> {
  const { upstream, connectTimeoutMs } = options;
  if (upstream !== null && isForUpstream(upstream, endpoint, options)) {
    const loopback = loopbackOf(endpoint.target);
    const denial =
      loopback === null ? null : decideAddress(options.rules, { ...endpoint, ...options, address: loopback });
    if (denial !== null) return { kind: "denied", denial };
    const { target, port } = endpoint;
    const host = target.kind === "name" ? target.name : target.address;
    const dialled = options.isPlainHttp
      ? await dialProxy(upstream, { timeoutMs: connectTimeoutMs })
      : await dialThrough(upstream, { host, port }, { timeoutMs: connectTimeoutMs });
    if (dialled.kind === "connected") return { ...dialled, upstream };
    return { kind: "failed", errno: `PROXY_${dialled.kind === "refused" ? dialled.status : dialled.errno}` };
  }
  const addresses = await addressesOf(endpoint, options.resolve);
  if (addresses.kind === "failed") return addresses;
  let result: Dialled = { kind: "failed", errno: "ENOTFOUND" };
  for (const address of addresses.list) {
    const denial = decideAddress(options.rules, { ...endpoint, ...options, address });
    const tried: Dialled =
      denial === null
        ? await tryAddress(address, { port: endpoint.port, ...options })
        : { kind: "denied", denial };
    if (tried.kind === "connected") return tried;
    // A failure of an address that is allowed says more than the refusal of another.
    if (result.kind !== "failed" || result.errno === "ENOTFOUND") result = tried;
  }
  return result;
}

/** This machine itself is not reached through a proxy, which would take its loopback for the one that is meant. */
function isForUpstream(
  upstream: UpstreamProxy,
  endpoint: Endpoint,
  { ownAddresses }: Pick<DialOptions, "ownAddresses">,
): boolean {
  const { target } = endpoint;
  if (target.kind === "name") return target.name !== HOST_NAME && !isBypassed(upstream, endpoint);
  const isHere = scopeOf(target.address) === "loopback" || ownAddresses().includes(target.address);
  return !isHere && !isBypassed(upstream, endpoint);
}

/** A proxy looks up names itself, so nothing but these names can be known to be private. */
function loopbackOf(target: Target): string | null {
  const isLocal = target.kind === "name" && /(?:^|\.)localhost$/.test(target.name);
  return isLocal ? "127.0.0.1" : null;
}

async function addressesOf(
  { target }: Endpoint,
  resolve: Resolve,
): Promise<{ kind: "found"; list: readonly string[] } | { kind: "failed"; errno: string }> {
  if (target.kind === "address") return { kind: "found", list: [target.address] };
  if (target.name === HOST_NAME) return { kind: "found", list: ["127.0.0.1", "::1"] };
  try {
    const answers = await resolve(target.name);
    return { kind: "found", list: answers.map(normalAddress).filter((address) => address !== null) };
  } catch (error) {
    return { kind: "failed", errno: errnoOrIo(error) };
  }
}

async function tryAddress(
  host: string,
  { port, connectTimeoutMs }: { port: number; connectTimeoutMs: number },
): Promise<Dialled> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  const failed = await new Promise<string | null>((resolve) => {
    const timer = setTimeout(() => resolve("ETIMEDOUT"), connectTimeoutMs);
    const settle = (errno: string | null) => {
      clearTimeout(timer);
      resolve(errno);
    };
    socket.once("connect", () => settle(null));
    socket.once("error", (error) => settle(errnoOrIo(error)));
  });
  // Whoever uses the socket learns of its end by its closing, whether or not there was an error.
  socket.on("error", () => undefined);
  if (failed === null) return { kind: "connected", socket, upstream: null };
  socket.destroy();
  return { kind: "failed", errno: failed };
}

/** Resolves a name as the host's own programs do, so its /etc/hosts counts, too. */
export async function resolveOnHost(name: string): Promise<readonly string[]> {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
}

export function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.map(({ address }) => normalAddress(address)).filter((address) => address !== null);
}
