import { once } from "node:events";
import { lstat, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { type AddressInfo, BlockList, connect, isIP, isIPv6 } from "node:net";
import { BrigError } from "../../errors.js";
import { errnoOf, systemReason } from "../errno.js";

/** Where a server listens. */
export type ListenAddress =
  /** Port 0 is any that is free. */
  { kind: "port"; host: string; port: number } | { kind: "socket"; path: string };

const wildcards: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** An address as in `127.0.0.1:8017`, `[::1]:8017`, `name:8017` or `unix:/path`; null for anything else. */
export function parseListenAddress(text: string): ListenAddress | null {
  const path = /^unix:(\/[^\0]+)$/.exec(text)?.[1];
  if (path !== undefined) return { kind: "socket", path };
  const [, bracketed, plain, digits] =
    /^(?:https?:\/\/)?(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+)):([0-9]{1,5})\/?$/i.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535 || (bracketed !== undefined && !isIPv6(bracketed))) return null;
  return { kind: "port", host: host.toLowerCase(), port };
}

/** Whether an address of a network interface, or `localhost`, is this machine's own loopback. */
export function isLoopbackAddress(host: string): boolean {
  if (host === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && loopback.check(host, version === 4 ? "ipv4" : "ipv6");
}

/** Whether it stands for all addresses of this machine. */
export function isWildcard(host: string): boolean {
  return wildcards.has(host);
}

/** Whether only programs of this machine can connect to it. */
export function isLocal(address: ListenAddress): boolean {
  return address.kind === "socket" || isLoopbackAddress(address.host);
}

/** The host and port of a URL by which clients of this machine connect. */
function hostInUrl(host: string, port: number): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${isIPv6(reached) ? `[${reached}]` : reached}:${port}`;
}

/** Resolves to the host and port of a URL, or to the path of the socket. Error: `usage.invalid`. */
export async function listenAt(server: Server, address: ListenAddress): Promise<string> {
  if (address.kind === "socket") {
    await removeUnusedSocket(address.path);
    return await listenAlone(server, address.path, "usage.invalid");
  }
  const { host, port } = address;
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    throw new BrigError(`cannot listen on ${hostInUrl(host, port)}: ${systemReason(cause)}`, {
      code: "usage.invalid",
      hint: "choose another port, or 0 for any that is free, and an address of this machine",
      cause,
    });
  }
  return hostInUrl(host, (server.address() as AddressInfo).port);
}

/** Listens on a socket that only this user can open: it has that mode from the moment that it is there. */
export async function listenAlone(
  server: Server,
  path: string,
  code: "usage.invalid" | "store.failed",
): Promise<string> {
  const before = process.umask(0o177);
  try {
    return await new Promise<string>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, () => resolve(path));
    });
  } catch (cause) {
    throw new BrigError(`cannot listen on ${path}: ${systemReason(cause)}`, { code, cause });
  } finally {
    process.umask(before);
  }
}

/** Removes the socket of a server that was killed. Anything else that is there stays. */
async function removeUnusedSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found?.isSocket() !== true) return;
  const socket = connect(path);
  try {
    await once(socket, "connect");
  } catch (error) {
    if (errnoOf(error) === "ECONNREFUSED") await rm(path, { force: true });
  } finally {
    socket.destroy();
  }
}
