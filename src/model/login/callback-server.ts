import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BrigError } from "../../errors.js";
import {
  type CallbackPage,
  nothingPage,
  pageHeaders,
  renderPage,
  secondPage,
  strangePage,
} from "./callback-page.js";

const path = "/auth/callback";
/** A browser is on the same machine and sends its few headers at once. */
const requestTimeoutMs = 10_000;

/** The browser back from the issuer, waiting for a page. */
export interface Callback {
  url: URL;
  /** Resolves when the page is sent, or when the browser has gone. */
  answer(page: CallbackPage): Promise<void>;
}

export interface CallbackServer extends AsyncDisposable {
  /** Where the issuer sends the browser. */
  readonly redirectUri: string;
  /** The first request that carries our state. Those that do not are turned away, and the wait goes on. */
  readonly callback: Promise<Callback>;
}

export interface CallbackServerOptions {
  /** Tried in this order; 0 takes any free port. */
  ports: readonly number[];
  state: string;
}

/** Listens on the loopback for the end of one login. No port that is free: `model.auth`. */
export async function openCallbackServer({ ports, state }: CallbackServerOptions): Promise<CallbackServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs });
  server.maxConnections = 32;
  const port = await listen(server, ports);
  const origin = `http://localhost:${port}`;
  const callback = new Promise<Callback>((resolve) => {
    let isTaken = false;
    server.on("request", (request, response) => {
      const url = callbackUrl(request, { origin, state });
      if (url === "nothing") return void send(response, nothingPage);
      if (url === "strange") return void send(response, strangePage);
      if (isTaken) return void send(response, secondPage);
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
  throw new BrigError(`port ${ports.join(" and ")} of this machine cannot be listened on`, {
    code: "model.auth",
    hint: "end the other login that waits there, choose another --port, or use --device-auth",
    cause,
  });
}

/** The address of a request, if it is the end of our login. A page of another site cannot pass for it: it lacks the state. */
function callbackUrl(
  { method, url = "", headers }: IncomingMessage,
  { origin, state }: { origin: string; state: string },
): URL | "nothing" | "strange" {
  const ownHosts = [origin, origin.replace("localhost", "127.0.0.1")];
  if (method !== "GET" || !ownHosts.includes(`http://${headers.host}`)) return "nothing";
  if (!url.startsWith("/") || !URL.canParse(`${origin}${url}`)) return "nothing";
  const address = new URL(`${origin}${url}`);
  if (address.pathname !== path) return "nothing";
  const states = address.searchParams.getAll("state");
  return states.length === 1 && states[0] === state ? address : "strange";
}

async function send(response: ServerResponse, page: CallbackPage): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.writeHead(page.status, pageHeaders);
    response.end(renderPage(page));
  });
}

/** Whoever still holds a connection has its answer, or is not who we wait for. */
async function close(server: Server): Promise<void> {
  const isClosed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await isClosed;
}
