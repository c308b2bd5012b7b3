import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { connectToPort, join } from "../../../sandbox/index.js";
import type { MemoryShare } from "../http/memory-budget.js";
import { busy } from "../http/refusal.js";
import type { ServedSandbox } from "../sandboxes/served-sandbox.js";

/** Where a request to a port goes, and what of it. */
interface PortTarget {
  served: ServedSandbox;
  port: number;
  /** With its query, as the server in the sandbox gets it. */
  path: string;
  /** Headers that it does not get, in lower case, besides those of the connection. */
  withheld: ReadonlySet<string>;
  /** Headers that it gets in place of the client's. */
  headers: Readonly<Record<string, string>>;
  /** Headers that the client gets besides those of the answer. */
  answerHeaders?: Readonly<Record<string, string>>;
}

export interface PortCall {
  target: PortTarget;
  signal: AbortSignal;
  memory: MemoryShare;
}

const MAX_CONNECTIONS = 256;
const RETRY_SECONDS = 1;
/** What is on the way in both directions, and the heads. */
const CONNECTION_BYTES = 512 * 1024;
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_HEADERS = 256;
/** Answers such as 103 that come before the real one. */
const MAX_EARLY_ANSWERS = 32;

/** Headers that are only for the connection to the next program, besides those that `Connection` names. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  // The service itself has answered an expectation.
  ...["te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "expect"],
]);
/** Nobody can have these dropped by naming them in `Connection`. */
const NEVER_DROPPED: ReadonlySet<string> = new Set(["host", "content-length", "cookie", "authorization"]);
/** What an answer may not say of the address that it comes from: it is the service's. */
const OF_THE_ADDRESS: ReadonlySet<string> = new Set([
  ...["strict-transport-security", "alt-svc", "clear-site-data", "service-worker-allowed"],
]);

/** Passes requests of clients to servers in sandboxes. Neither the one nor the other is trusted. */
export class PortProxy {
  readonly #counts = new WeakMap<ServedSandbox, number>();

  /**
   * Passes one request on, and the answer back as it comes. Errors, before anything was sent: `sandbox.port-failed`, `sandbox.gone`; a refusal with
   * 429 for too many at once.
   */
  async answer(incoming: IncomingMessage, outgoing: ServerResponse, call: PortCall): Promise<void> {
    await this.#connected(call, async (inside, signal) => {
      const request = requestTo(inside, incoming, call.target);
      const answered = answerOf(request, { isUpgraded: false, port: call.target.port });
      const sent = pipeline(incoming, request).catch(() => undefined);
      const answer = await answered;
      await passAnswer(answer.response, outgoing, call.target);
      signal.throwIfAborted();
      // A client that is still sending gets to see the whole answer.
      if (!incoming.complete) incoming.resume();
      else await sent;
    });
  }

  /** The same for a request to become a WebSocket, which it is until either side ends it. The server in the sandbox may refuse. */
  async upgrade(incoming: IncomingMessage, socket: Duplex, call: PortCall): Promise<void> {
    await this.#connected(call, async (inside) => {
      const request = requestTo(inside, incoming, call.target, { upgrade: "websocket" });
      const answered = answerOf(request, { isUpgraded: true, port: call.target.port });
      request.end();
      const { response, stream, head } = await answered;
      if (stream === null) return await passOnSocket(response, { incoming, socket, target: call.target });
      if (head.length > 0) stream.unshift(head);
      const lines = pairsOf(answerHeaders(response, call.target)).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines.join("")}\r\n`,
        "latin1",
      );
      await join(stream, socket);
    });
  }

  /** Errors: those of `connectToPort`; of the call. */
  async #connected(
    { target: { served, port }, signal, memory }: PortCall,
    pass: (inside: Duplex, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    using _counted = this.#count(served);
    memory.take(CONNECTION_BYTES);
    await served.use(signal, async ({ sandbox, signal }) => {
      const inside = await connectToPort(sandbox, port, signal);
      const end = () => void inside.destroy();
      signal.addEventListener("abort", end, { once: true });
      try {
        await pass(inside, signal);
      } finally {
        signal.removeEventListener("abort", end);
        inside.destroy();
      }
    });
  }

  #count(served: ServedSandbox): Disposable {
    const count = this.#counts.get(served) ?? 0;
    if (count >= MAX_CONNECTIONS)
      throw busy(`the ports of a sandbox have at most ${MAX_CONNECTIONS} connections at the same time`, {
        status: 429,
        retrySeconds: RETRY_SECONDS,
      });
    this.#counts.set(served, count + 1);
    return {
      [Symbol.dispose]: () => void this.#counts.set(served, (this.#counts.get(served) ?? 1) - 1),
    };
  }
}

function requestTo(
  inside: Duplex,
  incoming: IncomingMessage,
  { path, withheld, headers }: PortTarget,
  { upgrade }: { upgrade?: string } = {},
): ClientRequest {
  const replaced = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const passed = passedHeaders(incoming.rawHeaders).filter(
    ([name]) => !withheld.has(name.toLowerCase()) && !replaced.has(name.toLowerCase()),
  );
  const connection: [string, string][] =
    upgrade === undefined
      ? [["Connection", "close"]]
      : [
          ["Connection", "Upgrade"],
          ["Upgrade", upgrade],
        ];
  const length: [string, string][] =
    incoming.headers["transfer-encoding"] === undefined ? [] : [["Transfer-Encoding", "chunked"]];
  const request = openRequest({
    createConnection: () => inside,
    method: incoming.method,
    path,
    headers: [...passed, ...Object.entries(headers), ...connection, ...length].flat(),
    setHost: false,
    insecureHTTPParser: false,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  request.maxHeadersCount = 2 * MAX_HEADERS;
  // The server may answer before the first byte of a body comes.
  request.flushHeaders();
  return request;
}

interface InsideAnswer {
  response: IncomingMessage;
  /** The connection, if it is one of another protocol from now on. */
  stream: Duplex | null;
  /** What has arrived on it already. */
  head: Buffer;
}

/** Error: `sandbox.port-failed` for what is no answer, or none to this request. */
async function answerOf(
  request: ClientRequest,
  { isUpgraded, port }: { isUpgraded: boolean; port: number },
): Promise<InsideAnswer> {
  let earlyCount = 0;
  return await new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown) => {
      request.destroy();
      reject(noAnswer(port, why, cause));
    };
    request.on("error", (error) =>
      fail(`the server has not answered in HTTP (${errnoOf(error) ?? "EIO"})`, error),
    );
    request.once("close", () => fail("the server has closed the connection"));
    request.on("information", () => {
      earlyCount++;
      if (earlyCount > MAX_EARLY_ANSWERS) fail("the server sends no end of early answers");
    });
    request.once("upgrade", (response, stream, head) => {
      const isWanted = isUpgraded && /^websocket$/i.test(response.headers.upgrade ?? "");
      if (isWanted) resolve({ response, stream, head });
      else fail("the server has changed the protocol without being asked");
    });
    request.once("response", (response) => {
      if (response.rawHeaders.length / 2 > MAX_HEADERS) fail("the answer has too many headers");
      else resolve({ response, stream: null, head: Buffer.alloc(0) });
    });
  });
}

function noAnswer(port: number, why: string, cause: unknown): BrigError {
  return new BrigError(`port ${port} of the sandbox gives no answer: ${why}`, {
    code: "sandbox.port-failed",
    cause,
  });
}

/** Once the head is sent, a broken answer can only be cut off. */
async function passAnswer(
  response: IncomingMessage,
  outgoing: ServerResponse,
  target: PortTarget,
): Promise<void> {
  outgoing.writeHead(response.statusCode ?? 502, answerHeaders(response, target));
  // A page that waits for the first event of a stream must get its head at once.
  outgoing.flushHeaders();
  await pipeline(response, outgoing).catch(() => void outgoing.destroy());
}

async function passOnSocket(
  response: IncomingMessage,
  { incoming, socket, target }: { incoming: IncomingMessage; socket: Duplex; target: PortTarget },
): Promise<void> {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  // A stream of HTTP's own server: what a Socket has besides is not used.
  outgoing.assignSocket(socket as Socket);
  outgoing.once("finish", () => socket.end());
  await passAnswer(response, outgoing, target);
  await finished(socket, { readable: false }).catch(() => undefined);
}

/** Names and values in turn. Error: `sandbox.port-failed` for what cannot be sent on. */
function answerHeaders(response: IncomingMessage, { answerHeaders = {}, port }: PortTarget): string[] {
  const passed = passedHeaders(response.rawHeaders).filter(
    ([name]) => !OF_THE_ADDRESS.has(name.toLowerCase()),
  );
  try {
    for (const [name, value] of passed) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
  } catch (cause) {
    throw noAnswer(port, "its headers are not valid", cause);
  }
  return [...passed, ...Object.entries(answerHeaders)].flat();
}

function pairsOf(headers: readonly string[]): [string, string][] {
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ""]] : []));
}

/** The headers that are not for this connection only, in their order and spelling. */
function passedHeaders(rawHeaders: readonly string[]): [string, string][] {
  const pairs = pairsOf(rawHeaders);
  const named = pairs
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.split(",").map((one) => one.trim().toLowerCase()))
    .filter((name) => !NEVER_DROPPED.has(name));
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase()));
}
