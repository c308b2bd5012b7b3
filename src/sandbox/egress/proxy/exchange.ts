import type { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import type { EgressGate } from "../gate.js";
import type { Denial } from "../rules/denial.js";
import type { MaskedAnswer } from "../secrets/masked-answer.js";
import { errnoOrIo } from "../tunnel/join.js";
import type { ServerConnection } from "./server-connection.js";

const RESPONSE_HEADERS_MAX_BYTES = 131_072;

/** The errno of what one side has sent and the other side may not be sent, because it is no proper HTTP. */
export const UNSENDABLE = "EPROTO";

export interface ExchangeEnd {
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
export async function exchange(
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
