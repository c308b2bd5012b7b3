import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { Answer } from "./calls.js";
import { isLong, jsonPieces } from "./json-pieces.js";
import { type RefusedAnswer, refusedAnswer } from "./refusal.js";

/** How much is written before the client has to have read what was written earlier. */
const PIECE_BYTES = 1024 * 1024;

/** Sends an answer. Resolves when all of it is sent, or the client has gone or left it unread for so long. */
export async function sendAnswer(
  response: ServerResponse,
  { status, answer, unreadMs }: { status: number; answer: Answer; unreadMs: number },
): Promise<void> {
  switch (answer.kind) {
    case "nothing":
      return void response.writeHead(status).end();
    case "json":
      if (isLong(answer.value))
        return await sendPieces(response, { status, pieces: jsonPieces(answer.value), unreadMs });
      return await sendWhole(response, {
        status,
        type: "application/json",
        bytes: jsonBytes(answer.value),
        unreadMs,
      });
    case "bytes":
      return await sendWhole(response, {
        status,
        type: "application/octet-stream",
        bytes: answer.bytes,
        unreadMs,
      });
    case "lines":
      response.writeHead(status, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
      response.flushHeaders();
      await answer.run(inOrder((line) => write(response, { bytes: lineBytes(line), unreadMs })));
      return void response.end();
    default:
      answer satisfies never;
  }
}

export function sendRefusal(response: ServerResponse, { status, headers, body }: RefusedAnswer): void {
  if (response.headersSent) return void response.destroy();
  // Discards the rest of the request. A client that is still sending it would otherwise not read the answer.
  response.req.resume();
  // What is still to come of a body that was refused is not worth keeping the connection for.
  const close = response.req.complete ? {} : { connection: "close" };
  response
    .writeHead(status, { "content-type": "application/json", ...close, ...headers })
    .end(JSON.stringify(body));
}

/** The last line of a stream that could not go on. */
export function errorLine(error: unknown): object {
  return { type: "error", ...refusedAnswer(error).body.error };
}

/** A line waits until those before it are sent. */
function inOrder(send: (line: object) => Promise<void>): (line: object) => Promise<void> {
  let before = Promise.resolve();
  return async (line) => {
    before = before.then(() => send(line));
    await before;
  };
}

async function sendWhole(
  response: ServerResponse,
  { status, type, bytes, unreadMs }: { status: number; type: string; bytes: Uint8Array; unreadMs: number },
): Promise<void> {
  response.writeHead(status, {
    "content-type": type,
    "content-length": bytes.length,
    "cache-control": "no-store",
  });
  let at = 0;
  for (; at + PIECE_BYTES < bytes.length; at += PIECE_BYTES)
    await write(response, { bytes: bytes.subarray(at, at + PIECE_BYTES), unreadMs });
  await end(response, { bytes: bytes.subarray(at), unreadMs });
}

/** Of JSON whose length is not known before it is made. */
async function sendPieces(
  response: ServerResponse,
  { status, pieces, unreadMs }: { status: number; pieces: Iterable<string>; unreadMs: number },
): Promise<void> {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  for (const piece of pieces) await write(response, { bytes: piece, unreadMs });
  await end(response, { bytes: "", unreadMs });
}

async function write(
  response: ServerResponse,
  { bytes, unreadMs }: { bytes: string | Uint8Array; unreadMs: number },
): Promise<void> {
  if (response.destroyed || response.write(bytes)) return;
  await giveTime(response, { event: "drain", unreadMs });
}

async function end(
  response: ServerResponse,
  { bytes, unreadMs }: { bytes: string | Uint8Array; unreadMs: number },
): Promise<void> {
  if (response.destroyed) return;
  response.end(bytes);
  if (!response.writableFinished) await giveTime(response, { event: "finish", unreadMs });
}

/** A client that reads nothing for so long is disconnected. */
async function giveTime(
  response: ServerResponse,
  { event, unreadMs }: { event: "drain" | "finish"; unreadMs: number },
): Promise<void> {
  const gone = new AbortController();
  const leave = () => gone.abort();
  response.once("close", leave);
  using limit = new TimeLimit(unreadMs, gone.signal);
  try {
    await once(response, event, { signal: limit.signal });
  } catch {
    response.destroy();
  } finally {
    response.off("close", leave);
  }
}

function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function lineBytes(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}
