import type { IncomingMessage } from "node:http";
import { type Duplex, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { plainHeaderName } from "../read-request.js";
import { SpelledSearch, SpelledTexts } from "./spelled.js";
import { coverIn, StreamMask } from "./stream-mask.js";

/** Hides secrets in the answers of servers. */
export class AnswerMask {
  readonly #texts: SpelledTexts;
  readonly #inLowerCase: SpelledTexts;

  constructor(secrets: readonly string[]) {
    this.#texts = new SpelledTexts(secrets);
    this.#inLowerCase = new SpelledTexts(secrets.map((secret) => secret.toLowerCase()));
  }

  text(text: string): string {
    return maskText(text, this.#texts);
  }

  /** Hides secrets also in other capitals: servers write names of headers as they like. */
  headerName(name: string): string {
    const shown = this.text(name);
    const lower = maskText(name.toLowerCase(), this.#inLowerCase);
    return shown.replace(/./g, (one, at: number) => (lower[at] === "*" ? "*" : one));
  }

  stream(): Transform {
    return maskStream(this.#texts);
  }
}

/** Replaces each of the texts by as many asterisks as it has bytes, in place, and returns the data. */
export function maskIn(data: Buffer, texts: SpelledTexts): Buffer {
  // Nothing is covered before the search has passed it.
  new SpelledSearch(texts, coverIn(data)).scan(data);
  return data;
}

/** One character stands for one byte. */
function maskText(text: string, texts: SpelledTexts): string {
  return maskIn(Buffer.from(text, "latin1"), texts).toString("latin1");
}

/** Masks a stream. Only bytes that may be the beginning of a secret wait for what follows. */
export function maskStream(texts: SpelledTexts): Transform {
  const mask = new StreamMask(() => texts);
  return new Transform({
    transform(chunk: Buffer, _, done) {
      done(null, mask.push(chunk));
    },
    flush(done) {
      done(null, mask.end());
    },
  });
}

export interface MaskedAnswer {
  /** Reason phrase, the text after the status. */
  reason: string;
  /** Names and values in turn. */
  headers: string[];
  /** Streams through which the body passes, in this order. */
  through: Duplex[];
}

/** Headers that ask a server for a part, for changes only, or for compression. */
const NOT_ASKED_FOR = [
  ...["accept-encoding", "range", "if-range", "request-range", "x-range", "x-ms-range", "a-im"],
  "sec-websocket-extensions",
];
/** Partial Content, and IM Used. */
const IN_PART: ReadonlySet<number> = new Set([206, 226]);

/** Asks for an answer in which secrets can be found: whole, and not compressed. */
export function askForPlainAnswer(headers: readonly string[]): string[] {
  return [...without(headers, NOT_ASKED_FOR), "Accept-Encoding", "identity"];
}

/**
 * Null for an answer whose encoding hides what is in it, and for a part of one where the whole was asked for. `headers` are
 * names and values in turn.
 */
export function maskAnswer(
  { headers: { "content-encoding": encoding }, statusCode = 0, statusMessage = "" }: IncomingMessage,
  { headers, mask, method, isWhole }: AnswerOptions,
): MaskedAnswer | null {
  if (isWhole && IN_PART.has(statusCode)) return null;
  const reason = mask.text(statusMessage);
  const masked = headers.map((text, at) => (at % 2 === 0 ? mask.headerName(text) : mask.text(text)));
  if (method === "HEAD" || statusCode === 204 || statusCode === 304)
    return { reason, headers: masked, through: [] };
  const decoder = decoderFor(encoding?.trim().toLowerCase() ?? "identity");
  if (decoder === undefined) return null;
  if (decoder === null) return { reason, headers: masked, through: [mask.stream()] };
  const plain = without(masked, ["content-encoding", "content-length"]);
  return { reason, headers: plain, through: [decoder, mask.stream()] };
}

interface AnswerOptions {
  /** Names and values in turn. */
  headers: readonly string[];
  mask: AnswerMask;
  method: string;
  /** Whether the whole was asked for. */
  isWhole: boolean;
}

/** Null if nothing is to be decoded; undefined for an unknown encoding. */
function decoderFor(encoding: string): Duplex | null | undefined {
  if (encoding === "identity" || encoding === "") return null;
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : undefined;
}

function without(headers: readonly string[], names: readonly string[]): string[] {
  return headers.filter((_, at) => !names.includes(plainHeaderName(headers[at - (at % 2)] ?? "")));
}
