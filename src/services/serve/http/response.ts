import type { IncomingMessage, ServerResponse } from "node:http";
import { sendWhole } from "../../../lib/http/web-server.js";
import type { BodyOf, HeadersOf, QueryOf, RouteName } from "../wire/routes.js";
import type { ClientSocket } from "./client-socket.js";
import type { MemoryShare } from "./memory-budget.js";
import { type RefusedAnswer, refusedAnswer, upgradeRequired } from "./refusal.js";
import type { ClientRights } from "./served-client.js";

const jsonHeaders = { "content-type": "application/json", "cache-control": "no-store" };
const bytesHeaders = { "content-type": "application/octet-stream", "cache-control": "no-store" };
const linesHeaders = { "content-type": "application/x-ndjson", "cache-control": "no-store" };

/** How much is sent at once before the client has to have read what was sent earlier. */
const PIECE_BYTES = 1024 * 1024;

export interface SentAnswer {
  response: Response;
  /** Resolves when nothing of the call goes on; the client may have gone earlier. */
  ended?: Promise<void>;
}

export function responseOf(status: number, answer: Answer, outgoing: ServerResponse): SentAnswer {
  switch (answer.kind) {
    case "nothing":
      return { response: sendWhole(outgoing, { status }) };
    case "json":
      if (isLong(answer.value))
        return { response: piecesResponse(status, encoded(jsonPieces(answer.value)), jsonHeaders) };
      return {
        response: wholeResponse(
          { status, headers: jsonHeaders, bytes: Buffer.from(JSON.stringify(answer.value)) },
          outgoing,
        ),
      };
    case "bytes": {
      const headers = { ...bytesHeaders, ...answer.headers };
      return {
        response: wholeResponse({ status: answer.status ?? status, headers, bytes: answer.bytes }, outgoing),
      };
    }
    case "stream": {
      const { type, lengthBytes, pieces } = answer;
      const headers = {
        ...{ "content-type": type, "cache-control": "no-store" },
        ...(lengthBytes !== undefined && { "content-length": `${lengthBytes}` }),
        ...answer.headers,
      };
      return {
        response: new Response(ReadableStream.from(pieces), { status: answer.status ?? status, headers }),
      };
    }
    case "text": {
      const headers = { "content-type": answer.type, "cache-control": "no-store" };
      return { response: wholeResponse({ status, headers, bytes: Buffer.from(answer.text) }, outgoing) };
    }
    case "lines":
      return linesResponse(status, answer.run);
    case "socket":
      throw upgradeRequired();
    default:
      return answer satisfies never;
  }
}

export function refusalResponse(
  { status, headers, body }: RefusedAnswer,
  request: IncomingMessage,
): Response {
  // Discards the rest of the request. A client that is still sending it would otherwise not read the answer.
  request.resume();
  // What is still to come of a body that was refused is not worth keeping the connection for.
  const close = !request.complete && { connection: "close" };
  return Response.json(body, { status, headers: { ...close, ...headers } });
}

/** The last line of a stream that could not go on. */
export function errorLine(error: unknown): object {
  return { type: "error", ...refusedAnswer(error).body.error };
}

function wholeResponse(
  { status, headers, bytes }: { status: number; headers: Record<string, string>; bytes: Uint8Array },
  outgoing: ServerResponse,
): Response {
  if (bytes.length <= PIECE_BYTES) return sendWhole(outgoing, { status, headers, bytes });
  return piecesResponse(status, piecesOf(bytes), { ...headers, "content-length": `${bytes.length}` });
}

function piecesResponse(
  status: number,
  pieces: Iterable<Uint8Array>,
  headers: Record<string, string>,
): Response {
  return new Response(ReadableStream.from(pieces), { status, headers });
}

/** Each line waits until the client has read enough of those before. Once it has gone, they are dropped. */
function linesResponse(status: number, run: Extract<Answer, { kind: "lines" }>["run"]): SentAnswer {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const dropped = () => undefined;
  const ended = run((line) => writer.write(Buffer.from(`${JSON.stringify(line)}\n`)).catch(dropped)).finally(
    () => writer.close().catch(dropped),
  );
  return { response: new Response(readable, { status, headers: linesHeaders }), ended };
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function* encoded(texts: Iterable<string>): Generator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

const PIECE_LENGTH = 64 * 1024;

/** Whether a value is worth being written in pieces: its JSON may be six times as large as its texts. */
export function isLong(value: unknown): value is object {
  return isObject(value) && Object.values(value).some(isLongText);
}

/** An object's JSON, the long texts in it bit by bit, so that it is never in memory as a whole. */
export function* jsonPieces(value: object): Generator<string> {
  let separator = "{";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    if (isLongText(field)) yield* textPieces(field);
    else yield JSON.stringify(field);
    separator = ",";
  }
  yield "}";
}

/** A character that is cut in two becomes two escapes, which mean the same. */
function* textPieces(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length; at += PIECE_LENGTH)
    yield JSON.stringify(text.slice(at, at + PIECE_LENGTH)).slice(1, -1);
  yield '"';
}

function isLongText(field: unknown): field is string {
  return typeof field === "string" && field.length > PIECE_LENGTH;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One request, checked. */
export interface Call<Name extends RouteName> {
  /** The name of the client, or of the one whose sandbox it is, if that may be asked of those of all. */
  client: string;
  /** What it may do besides using what is its own. */
  rights: ClientRights;
  /** The part of the path in place of `{id}`; empty for a path without one. */
  id: string;
  /** The part of the path in place of `{process}`; empty for a path without one. */
  process: string;
  query: QueryOf<Name>;
  headers: HeadersOf<Name>;
  body: BodyOf<Name>;
  /** Aborted when the client disconnects before it has the whole answer, and when the service is ended at once. */
  signal: AbortSignal;
  /** What the call keeps for the client counts here, until the whole answer is sent. */
  memory: MemoryShare;
}

/**
 * What is sent: JSON, bytes, pieces as they come, whose failure cuts the connection, a text of some type, or one JSON value per line as they are given to `send`. With a socket the connection becomes a WebSocket,
 * which is closed when `serve` is done.
 */
export type Answer =
  | { kind: "json"; value: unknown }
  | ({ kind: "bytes"; bytes: Uint8Array } & OtherHead)
  | ({ kind: "stream"; type: string; lengthBytes?: number; pieces: AsyncIterable<Uint8Array> } & OtherHead)
  | { kind: "text"; type: string; text: string }
  | { kind: "lines"; run: (send: (line: object) => Promise<void>) => Promise<void> }
  | { kind: "socket"; serve: (socket: ClientSocket) => Promise<void> }
  | { kind: "nothing" };

interface OtherHead {
  /** Instead of that of the route. */
  status?: number;
  headers?: Readonly<Record<string, string>>;
}

/** How each request is answered. */
export type Calls = { readonly [Name in RouteName]: (call: Call<Name>) => Promise<Answer> };
