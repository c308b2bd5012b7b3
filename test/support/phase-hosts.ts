import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { companyProxy } from "./company-proxy.js";

/** How long a request waits for the connection of `/hold` to be cut, before it is told that it is open. */
const CUT_WITHIN_MS = 20_000;

/**
 * A server on this machine that containers of tasks reach under any name, by a proxy that leads all names here: a task may
 * not name this machine. `/hold` is answered without an end, and `/held` says "cut" once that connection is cut.
 */
export async function phaseHosts() {
  const seen: string[] = [];
  const held: Promise<unknown>[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://server");
    seen.push(`${request.headers.host?.split(":")[0]}${pathname}`);
    if (pathname === "/held") {
      const late = setTimeout(() => response.end("open"), CUT_WITHIN_MS);
      void Promise.all(held).then(() => {
        clearTimeout(late);
        response.end(held.length === 0 ? "never held" : "cut");
      });
    } else if (pathname === "/hold") {
      held.push(once(response, "close"));
      response.write("holding");
    } else response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const proxy = await companyProxy({ tunnelPorts: [port] });
  return {
    port,
    /** Host and path of each request. */
    seen,
    egressProxy: proxy.url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}
