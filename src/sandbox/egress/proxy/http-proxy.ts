import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { EgressGate } from "../gate.js";
import { isSameTarget, parseAuthority, shownHost } from "../rules/target.js";
import { reset } from "../tunnel/join.js";
import { openTunnel, type ServeHttp } from "../tunnel/open-tunnel.js";
import { forwardRequest } from "./forward-request.js";
import { forwardUpgrade } from "./forward-upgrade.js";
import type { HttpOrigin } from "./http-origin.js";
import { failure, malformed, type Refusal, refusalOf } from "./refusal.js";
import { KeptConnection } from "./server-connection.js";
import { writeRefusal } from "./write-refusal.js";

const HEADERS_MAX_BYTES = 65_536;

/** Serves connections that begin with a request of HTTP/1, each request by the rules of its moment. */
export class HttpProxy {
  readonly #gate: EgressGate;
  readonly #server: Server;
  readonly #origins = new WeakMap<Duplex, HttpOrigin>();
  readonly #waits = new WeakMap<Duplex, NodeJS.Timeout>();

  constructor(gate: EgressGate) {
    this.#gate = gate;
    // Node drops the answer to a program that has closed its side, unless this is set, which its types leave out.
    this.#server = Object.assign(createServer({ maxHeaderSize: HEADERS_MAX_BYTES }), {
      httpAllowHalfOpen: true,
    });
    this.#server.on("request", (request, response) => this.#forward(request, response));
    this.#server.on("connect", (request, stream, head) => {
      this.#connect(request, stream, head).catch(() => reset(stream));
    });
    this.#server.on("upgrade", (request, stream, head) => {
      this.#upgrade(request, stream, head).catch(() => reset(stream));
    });
    this.#server.on("clientError", (error, stream) => {
      clearTimeout(this.#waits.get(stream));
      const isTooLong = "code" in error && error.code === "HPE_HEADER_OVERFLOW";
      const what = isTooLong ? "the headers of the request are too long" : "this is no request of HTTP/1.1";
      writeRefusal(stream, { ...malformed(what), status: isTooLong ? 431 : 400 });
    });
  }

  serve(stream: Duplex, origin: Omit<HttpOrigin, "kept">): void {
    this.#origins.set(stream, { ...origin, kept: new KeptConnection(stream) });
    this.#expectHead(stream);
    stream.once("close", () => clearTimeout(this.#waits.get(stream)));
    this.#server.emit("connection", stream);
  }

  /** Serves tunnels in which HTTP is spoken, plainly or in TLS that ends here. */
  readonly serveHttp: ServeHttp = (stream, { attempting, endpoint, socket, isTls }) => {
    let ready: Socket | null = socket;
    const takeSocket = () => {
      const taken = ready;
      ready = null;
      return taken?.writable && taken.readable ? taken : null;
    };
    stream.once("close", () => socket.destroy());
    this.serve(stream, { attempting, fixed: { endpoint, isTls, takeSocket } });
  };

  /** A program that opens a connection and says nothing, or says it byte by byte, is cut off. */
  #expectHead(stream: Duplex): void {
    clearTimeout(this.#waits.get(stream));
    const timer = setTimeout(() => reset(stream), this.#gate.limits.headTimeoutMs);
    this.#waits.set(stream, timer);
  }

  #begin(stream: Duplex): HttpOrigin | undefined {
    clearTimeout(this.#waits.get(stream));
    return this.#origins.get(stream);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    // Node takes the socket out of a request that asked for an upgrade.
    const { socket } = request;
    const origin = this.#begin(socket);
    if (origin === undefined) {
      request.destroy();
      return;
    }
    response.once("finish", () => {
      if (!socket.destroyed) this.#expectHead(socket);
    });
    response.sendDate = false;
    void forwardRequest(request, response, { gate: this.#gate, origin }).catch(() => response.destroy());
  }

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const origin = this.#begin(stream);
    if (origin === undefined) return reset(stream);
    if (head.length > 0) stream.unshift(head);
    if (request.headers.upgrade?.toLowerCase() === "websocket")
      return await forwardUpgrade(request, stream, { gate: this.#gate, origin });
    // Java's client offers HTTP/2 in its first request, and is content with an answer of HTTP/1.1.
    if (hasBody(request)) return writeRefusal(stream, malformed("only web sockets can be upgraded to"));
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    // A stream of HTTP's own server: what a Socket has besides is not used.
    response.assignSocket(stream as Socket);
    response.once("finish", () => stream.end());
    this.#forward(request, response);
  }

  async #connect(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const origin = this.#begin(stream);
    if (origin === undefined) return reset(stream);
    if (head.length > 0) stream.unshift(head);
    const wanted = shownHost(request.url ?? "");
    const attempting = { ...origin.attempting, way: "connect" } as const;
    const refuse = (refusal: Refusal) => writeRefusal(stream, refusal);
    if (origin.fixed !== null) return refuse(malformed("this is not the address of the proxy"));
    const endpoint = parseAuthority(request.url ?? "");
    const named = parseAuthority(request.headers.host ?? request.url ?? "", { defaultPort: 443 });
    if (endpoint === null || named === null || !isSameTarget(endpoint.target, named.target)) {
      const denial =
        endpoint !== null && named !== null
          ? ({ kind: "other-name", name: shownHost(request.headers.host ?? "") } as const)
          : ({ kind: "malformed" } as const);
      const record = this.#gate.begin(attempting, { host: wanted, port: null });
      await record({ kind: "denied", denial });
      return refuse(refusalOf(denial, wanted));
    }
    await openTunnel(stream, endpoint, {
      gate: this.#gate,
      attempting,
      serveHttp: this.serveHttp,
      answers: {
        accepted: () => stream.write("HTTP/1.1 200 Connection established\r\n\r\n"),
        denied: (denial) => refuse(refusalOf(denial, wanted)),
        failed: (errno) => refuse(failure(errno, wanted)),
      },
    });
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0;
}
