import type { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline, type Readable } from "node:stream";
import type { EgressGate } from "../gate.js";
import { dropRest, errnoOrIo, join, reset } from "../join.js";
import type { Denial } from "../rules/denial.js";
import { hostOf, isSameTarget, parseAuthority, shownHost } from "../rules/target.js";
import type { MaskedAnswer } from "../secrets/answer-mask.js";
import { openTunnel, type ServeHttp } from "../tunnel.js";
import { type HttpOrigin, prepareRequest } from "./prepare-request.js";
import { failure, malformed, type Refusal, refusalOf, writeRefusal } from "./refusal.js";
import { KeptConnection, type ServerConnection } from "./server-connection.js";

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

/** Sends one request on to its target, and the answer back. */
async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  const inside = request.socket;
  const prepared = await prepareRequest(request, { gate, origin, isPlainHttp: true });
  if (prepared.kind === "refused") return answer(response, prepared.refusal);
  const { record, rule } = prepared;
  let { connection } = prepared;
  let end = await exchange(request, response, { ...prepared, gate, inside });
  // A server may close a kept connection in the very moment in which a request is sent.
  const isStale = connection.wasKept && end.errno !== null && end.bytesIn === 0 && end.cut === null;
  if (isStale && !response.destroyed) {
    const again = await prepared.reconnect();
    if (again !== null) {
      connection = again;
      end = await exchange(request, response, { ...prepared, connection, gate, inside });
    }
  }
  if (connection.isFree) origin.kept.keep(connection);
  const { cut, errno, bytesOut, bytesIn } = end;
  if (errno !== null) {
    const host = hostOf(connection.endpoint.target);
    if (response.headersSent) response.destroy();
    else answer(response, cut === null ? failure(errno, host) : refusalOf(cut, host));
  }
  const failed = errno === null ? ({ kind: "allowed" } as const) : ({ kind: "failed", errno } as const);
  await record(cut === null ? failed : { kind: "denied", denial: cut }, { rule, bytesOut, bytesIn });
}

function answer(response: ServerResponse, { status, outcome, text }: Refusal): void {
  if (response.destroyed) return;
  response.writeHead(status, STATUS_CODES[status], {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "x-brig-egress": outcome,
    connection: "close",
  });
  response.end(text);
}

/** Sends on the request for a web socket, and then everything that passes in it. */
async function forwardUpgrade(
  request: IncomingMessage,
  stream: Duplex,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  stream.on("error", () => undefined);
  const prepared = await prepareRequest(request, { gate, origin });
  if (prepared.kind === "refused") return writeRefusal(stream, prepared.refusal);
  const { connection, path, headers, record, rule } = prepared;
  const { socket, endpoint } = connection;
  let cut: Denial | null = gate.watch(socket, endpoint, (denial) => {
    cut = denial;
  });
  if (cut !== null) {
    await record({ kind: "denied", denial: cut }, { rule });
    return writeRefusal(stream, refusalOf(cut, hostOf(endpoint.target)));
  }
  const outgoing = connection.request({
    method: request.method,
    path,
    headers: [...headers, "Connection", "Upgrade", "Upgrade", "websocket"],
  });
  if (outgoing === null) {
    socket.destroy();
    await record({ kind: "failed", errno: UNSENDABLE }, { rule });
    return writeRefusal(stream, failure(UNSENDABLE, hostOf(endpoint.target)));
  }
  outgoing.end();
  const result = await new Promise<{ incoming: IncomingMessage; head: Buffer | null } | { errno: string }>(
    (resolve) => {
      const timer = setTimeout(() => outgoing.destroy(), gate.limits.idleTimeoutMs);
      const settle = (one: { incoming: IncomingMessage; head: Buffer | null } | { errno: string }) => {
        clearTimeout(timer);
        resolve(one);
      };
      outgoing.once("upgrade", (incoming, _, head) => settle({ incoming, head }));
      outgoing.once("response", (incoming) => settle({ incoming, head: null }));
      outgoing.once("error", (error) => settle({ errno: errnoOrIo(error) }));
      outgoing.once("close", () => settle({ errno: "ECONNRESET" }));
      stream.once("close", () => outgoing.destroy());
    },
  );
  if ("errno" in result) {
    await record({ kind: "failed", errno: result.errno }, { rule });
    return writeRefusal(stream, failure(result.errno, hostOf(endpoint.target)));
  }
  const { incoming, head } = result;
  const answered = prepared.answer(incoming);
  if (answered === null) {
    socket.destroy();
    await record({ kind: "failed", errno: UNSENDABLE }, { rule });
    return writeRefusal(stream, failure(UNSENDABLE, hostOf(endpoint.target)));
  }
  const hop = head === null ? ["Connection", "close"] : ["Connection", "Upgrade", "Upgrade", "websocket"];
  stream.write(
    headOf(incoming.statusCode ?? 0, { ...answered, headers: [...answered.headers, ...hop] }),
    "latin1",
  );
  if (head === null) {
    [...answered.through, stream].reduce((from: Readable, to) => from.pipe(to), incoming);
    dropRest(stream);
    incoming.once("error", () => reset(stream));
    await new Promise<void>((resolve) => incoming.once("close", resolve));
    await record({ kind: "allowed" }, { rule, bytesIn: socket.bytesRead, bytesOut: socket.bytesWritten });
    return;
  }
  if (head.length > 0) socket.unshift(head);
  const { errno, ...bytes } = await join(stream, socket, answered.through);
  if (cut !== null) await record({ kind: "denied", denial: cut }, { rule, ...bytes });
  else await record(errno === null ? { kind: "allowed" } : { kind: "failed", errno }, { rule, ...bytes });
}

function headOf(status: number, { reason, headers }: Pick<MaskedAnswer, "reason" | "headers">): string {
  const lines = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1] ?? ""}`] : []));
  return [`HTTP/1.1 ${status} ${reason}`, ...lines, "", ""].join("\r\n");
}

const RESPONSE_HEADERS_MAX_BYTES = 131_072;

/** The errno of what one side has sent and the other side may not be sent, because it is no proper HTTP. */
const UNSENDABLE = "EPROTO";

interface ExchangeEnd {
  bytesOut: number;
  bytesIn: number;
  /** Null if the whole answer was passed on. */
  errno: string | null;
  /** Why the connection was cut; null if it was not. */
  cut: Denial | null;
}

interface ExchangeOptions {
  gate: EgressGate;
  /** The connection of the program. Node may take it out of the request meanwhile. */
  inside: Duplex;
  connection: ServerConnection;
  path: string;
  headers: readonly string[];
  /** Replaces the body of the program's request, if that has been read already. */
  body: Buffer | null;
  answer(incoming: IncomingMessage): MaskedAnswer | null;
}

/**
 * Sends a request on a connection, and passes the answer on. Resolves once the answer has been passed on, and the connection is closed
 * or free for another request.
 */
async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  { gate, inside, connection, path, headers, body, answer }: ExchangeOptions,
): Promise<ExchangeEnd> {
  const { socket, endpoint } = connection;
  const before = { out: socket.bytesWritten, in: socket.bytesRead };
  let errno: string | null = null;
  let passedOn: Promise<void> | null = null;
  let cut: Denial | null = gate.watch(socket, endpoint, (denial) => {
    cut = denial;
  });
  if (cut !== null) return { cut, errno: "ECONNABORTED", bytesOut: 0, bytesIn: 0 };
  socket.setTimeout(gate.limits.idleTimeoutMs);
  const fail = (reason: string) => {
    errno ??= reason;
    socket.destroy();
  };
  // A program that goes away ends the request as well. An answer that has to wait for another one on the same connection is not
  // closed with it, so the connection is watched, too.
  const gone = listenForClose([response, inside], () => {
    if (!response.writableFinished) fail("ECONNRESET");
  });
  const outgoing = connection.request({
    method: request.method,
    path,
    headers: [
      ...headers,
      ...bodyLength(request),
      // Nothing follows a body on its connection, so that a server that takes it for a second request does not serve that.
      ...(connection.mayBeKept ? [] : ["Connection", "close"]),
    ],
    maxHeaderSize: RESPONSE_HEADERS_MAX_BYTES,
  });
  if (outgoing === null) fail(UNSENDABLE);
  else {
    outgoing.once("response", (incoming) => {
      const answered = answer(incoming);
      if (answered === null || !passHead(response, incoming.statusCode ?? 0, answered))
        return fail(UNSENDABLE);
      passedOn = passOn([incoming, ...answered.through, response]).then((error) => {
        if (error !== null) errno ??= errnoOrIo(error);
        if (error !== null || !connection.mayBeKept) socket.destroy();
      });
    });
    outgoing.once("error", (error) => fail(errnoOrIo(error)));
    const cutOff = (name: string) => {
      cut = { kind: "canary", name, isLeak: true };
      fail("ECONNABORTED");
    };
    gate.canaries?.watch(request, cutOff);
    const canary = body === null ? null : (gate.canaries?.findIn(body) ?? null);
    // Requests that may follow each other on one connection have no body.
    if (canary !== null) cutOff(canary);
    else if (body !== null) outgoing.end(body);
    else if (connection.mayBeKept || request.readableEnded) {
      request.resume();
      outgoing.end();
    } else
      pipeline(request, outgoing, (error) => {
        if (error && !response.writableEnded) outgoing.destroy();
      });
  }
  await connection.settled();
  await Promise.race([passedOn, gone.happened]);
  gone.stop();
  // An answer that switches to another protocol without being asked is none.
  if (passedOn === null) errno ??= UNSENDABLE;
  return { cut, errno, bytesOut: socket.bytesWritten - before.out, bytesIn: socket.bytesRead - before.in };
}

/** Null once everything has been passed on. A plain pipe where that is enough, which takes half the time of a pipeline. */
function passOn(streams: [IncomingMessage, ...Duplex[], ServerResponse]): Promise<Error | null> {
  const [incoming, next] = streams;
  const response = streams.at(-1) as ServerResponse;
  return new Promise((resolve) => {
    if (next !== response) pipeline(streams, (error) => resolve(error ?? null));
    else {
      incoming.on("error", (error) => {
        response.destroy();
        resolve(error);
      });
      response.on("error", resolve);
      response.once("finish", () => resolve(null));
      incoming.pipe(response);
    }
  });
}

/** Calls the listener, and resolves, when the first one is closed. */
function listenForClose(streams: readonly EventEmitter[], listener: () => void) {
  let settle: () => void = () => undefined;
  const happened = new Promise<void>((resolve) => {
    settle = () => {
      listener();
      resolve();
    };
  });
  for (const stream of streams) stream.once("close", settle);
  return {
    happened,
    stop: () => {
      for (const stream of streams) stream.off("close", settle);
    },
  };
}

/** False for a status or a reason that Node reads but does not write, such as status 99. */
function passHead(response: ServerResponse, status: number, { reason, headers }: MaskedAnswer): boolean {
  try {
    response.writeHead(status, reason, headers);
    return true;
  } catch {
    return false;
  }
}

/** A body without a length keeps its encoding, which is always "chunked". For a POST without a body Node would announce one. */
function bodyLength({ headers, method = "" }: IncomingMessage): string[] {
  if (headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];
  const saysLength = headers["content-length"] !== undefined;
  return saysLength || ["GET", "HEAD", "OPTIONS"].includes(method) ? [] : ["Content-Length", "0"];
}
