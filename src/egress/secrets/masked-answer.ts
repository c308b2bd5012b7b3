import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { maskStream, maskText } from "./mask.js";

export interface MaskedAnswer {
  /** What follows the status. */
  reason: string;
  /** Names and values in turn. */
  headers: string[];
  /** Through which the body passes, in this order. */
  through: Duplex[];
}

/** Asks for an answer in which secrets can be found: whole, and not compressed. */
export function askForPlainAnswer(headers: readonly string[]): string[] {
  const names = ["accept-encoding", "range", "if-range", "sec-websocket-extensions"];
  return [...without(headers, names), "Accept-Encoding", "identity"];
}

/** Null for an answer whose encoding hides what is in it. `headers` are names and values in turn. */
export function maskAnswer(
  { headers: { "content-encoding": encoding }, statusCode, statusMessage = "" }: IncomingMessage,
  { headers, forms, method }: { headers: readonly string[]; forms: readonly Buffer[]; method: string },
): MaskedAnswer | null {
  const reason = maskText(statusMessage, forms);
  const masked = headers.map((text, at) => (at % 2 === 0 ? text : maskText(text, forms)));
  if (method === "HEAD" || statusCode === 204 || statusCode === 304)
    return { reason, headers: masked, through: [] };
  const decoder = decoderFor(encoding?.trim().toLowerCase() ?? "identity");
  if (decoder === undefined) return null;
  if (decoder === null) return { reason, headers: masked, through: [maskStream(forms)] };
  const plain = without(masked, ["content-encoding", "content-length"]);
  return { reason, headers: plain, through: [decoder, maskStream(forms)] };
}

/** Null if nothing is to be decoded; undefined for an unknown encoding. */
function decoderFor(encoding: string): Duplex | null | undefined {
  if (encoding === "identity" || encoding === "") return null;
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : undefined;
}

function without(headers: readonly string[], names: readonly string[]): string[] {
  return headers.filter((_, at) => !names.includes(headers[at - (at % 2)]?.toLowerCase() ?? ""));
}
