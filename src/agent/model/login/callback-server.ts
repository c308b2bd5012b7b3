import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BrigError } from "../../../errors.js";
import {
  type CallbackPage,
  notFoundPage,
  otherLoginPage,
  pageHeaders,
  renderPage,
  usedLoginPage,
} from "./callback-page.js";

const path = "/auth/callback";
/** Generous: the browser is on the same machine and sends its few headers at once. */
const requestTimeoutMs = 10_000;

/** The browser's request after the issuer has sent it back to brig. It waits for a page. */
export interface Callback {
  url: URL;
  /** Resolves when the page is sent, or when the browser has closed the connection. */
  answer(page: CallbackPage): Promise<void>;
}

export interface CallbackServer extends AsyncDisposable {
  readonly redirectUri: string;
  /** The first request with the expected `state`. Others get an error page, and the wait goes on. */
  readonly callback: Promise<Callback>;
}

export interface CallbackServerOptions {
  ports: readonly number[];
  state: string;
}

/** Listens for the end of one login. Error: `model.auth` if none of the ports is free. */
export async function openCallbackServer({ ports, state }: CallbackServerOptions): Promise<CallbackServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs });
  server.maxConnections = 32;
  const port = await listen(server, ports);
  const origin = `http://localhost:${port}`;
  const callback = new Promise<Callback>((resolve) => {
    let isTaken = false;
    server.on("request", (request, response) => {
      const url = callbackUrl(request, { origin, state });
      if (url === "not-found") return void send(response, notFoundPage);
      if (url === "other-login") return void send(response, otherLoginPage);
      if (isTaken) return void send(response, usedLoginPage);
      isTaken = true;
      resolve({ url, answer: (page) => send(response, page) });
    });
  });
  return {
    redirectUri: `${origin}${path}`,
    callback,
    [Symbol.asyncDispose]: () => close(server),
  };
}

async function listen(server: Server, ports: readonly number[]): Promise<number> {
  let cause: unknown;
  for (const port of ports) {
    try {
      server.listen({ host: "127.0.0.1", port, exclusive: true });
      await once(server, "listening");
      const address = server.address();
      if (typeof address === "object" && address !== null) return address.port;
    } catch (error) {
      cause = error;
    }
  }
  throw new BrigError(`cannot listen on port ${ports.join(" or ")} of this machine`, {
    code: "model.auth",
    hint: "end the other login that is waiting, choose another --port, or use --device-auth",
    cause,
  });
}

/** The address of a request that ends this login. Pages of other sites cannot know the state. */
function callbackUrl(
  { method, url = "", headers }: IncomingMessage,
  { origin, state }: { origin: string; state: string },
): URL | "not-found" | "other-login" {
  const ownHosts = [origin, origin.replace("localhost", "127.0.0.1")];
  if (method !== "GET" || !ownHosts.includes(`http://${headers.host}`)) return "not-found";
  if (!url.startsWith("/") || !URL.canParse(`${origin}${url}`)) return "not-found";
  const address = new URL(`${origin}${url}`);
  if (address.pathname !== path) return "not-found";
  const states = address.searchParams.getAll("state");
  return states.length === 1 && states[0] === state ? address : "other-login";
}

async function send(response: ServerResponse, page: CallbackPage): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.writeHead(page.status, pageHeaders);
    response.end(renderPage(page));
  });
}

/** Open connections are cut: each has its answer by now, or is not part of the login. */
async function close(server: Server): Promise<void> {
  const isClosed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await isClosed;
}
