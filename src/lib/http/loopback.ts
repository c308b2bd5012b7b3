import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { BrigError } from "../../errors.js";

const LOOPBACK = "127.0.0.1";
const loopbackNames: ReadonlySet<string> = new Set(["localhost", LOOPBACK]);

/** Resolves to the address that clients connect to, such as `127.0.0.1:4000`. Port 0 is any that is free. */
export async function listenOnLoopback(server: Server, port: number): Promise<string> {
  try {
    server.listen(port, LOOPBACK);
    await once(server, "listening");
  } catch (cause) {
    throw new BrigError(`cannot listen on ${LOOPBACK}:${port}`, {
      code: "usage.invalid",
      hint: "choose another port, or 0 for any that is free",
      cause,
    });
  }
  return `${LOOPBACK}:${(server.address() as AddressInfo).port}`;
}

/** Whether a `Host` header names this machine's loopback, with any port: a tunnel may have another one. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && isLoopbackUrl(`http://${host}`);
}

/** Whether a URL, such as an `Origin` header, names this machine's loopback, with any port. */
export function isLoopbackUrl(url: string): boolean {
  try {
    return loopbackNames.has(new URL(url).hostname);
  } catch {
    return false;
  }
}
