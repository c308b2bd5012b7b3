import type { IncomingMessage } from "node:http";
import type { Answer } from "./calls.js";
import { isLong, jsonPieces } from "./json-pieces.js";
import { type RefusedAnswer, refusedAnswer } from "./refusal.js";

/** How much is sent before the client has to have read what was sent earlier. */
const PIECE_BYTES = 1024 * 1024;

export interface SentAnswer {
  response: Response;
  /** Resolves when nothing of the call goes on; the client may have gone earlier. */
  ended?: Promise<void>;
}

export function responseOf(status: number, answer: Answer): SentAnswer {
  switch (answer.kind) {
    case "nothing":
      return { response: new Response(null, { status }) };
    case "json":
      if (isLong(answer.value))
        return { response: piecesResponse(status, encoded(jsonPieces(answer.value))) };
      return {
        response: wholeResponse(status, "application/json", Buffer.from(JSON.stringify(answer.value))),
      };
    case "bytes":
      return { response: wholeResponse(status, "application/octet-stream", answer.bytes) };
    case "lines":
      return linesResponse(status, answer.run);
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

function wholeResponse(status: number, type: string, bytes: Uint8Array): Response {
  return piecesResponse(status, piecesOf(bytes), {
    "content-type": type,
    "content-length": `${bytes.length}`,
  });
}

/** The headers are those of JSON whose length is not known before it is made. */
function piecesResponse(
  status: number,
  pieces: Iterable<Uint8Array>,
  headers: Record<string, string> = { "content-type": "application/json" },
): Response {
  return new Response(ReadableStream.from(pieces), {
    status,
    headers: { ...headers, "cache-control": "no-store" },
  });
}

/** Each line waits until the client has read enough of those before. Once it has gone, they are dropped. */
function linesResponse(status: number, run: Extract<Answer, { kind: "lines" }>["run"]): SentAnswer {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const dropped = () => undefined;
  const ended = run((line) => writer.write(Buffer.from(`${JSON.stringify(line)}\n`)).catch(dropped)).finally(
    () => writer.close().catch(dropped),
  );
  const headers = { "content-type": "application/x-ndjson", "cache-control": "no-store" };
  return { response: new Response(readable, { status, headers }), ended };
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function* encoded(texts: Iterable<string>): Generator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}
