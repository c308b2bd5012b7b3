import { Transform } from "node:stream";
import { cover, StreamMask } from "./stream-mask.js";

/** How many characters of Base64 depend on the bytes before, when these end in the middle of a group of three. */
const SHARED_CHARS = [0, 2, 3];

/** How a secret can be written in an answer. */
export function formsOf(secret: string): Buffer[] {
  const bytes = Buffer.from(secret);
  const base64 = SHARED_CHARS.flatMap((shared, before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const whole = text.slice(shared, Math.floor(((before + bytes.length) * 8) / 6));
    return [whole, whole.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const hex = bytes.toString("hex");
  const forms = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    hex,
    hex.toUpperCase(),
  ];
  return [...new Set([...forms, ...base64])].map((form) => Buffer.from(form));
}

/** Replaces each form by as many asterisks, in place, and returns the data. */
export function maskIn(data: Buffer, forms: readonly Buffer[]): Buffer {
  cover(Buffer.from(data), data, forms);
  return data;
}

export function maskText(text: string, forms: readonly Buffer[]): string {
  return maskIn(Buffer.from(text, "latin1"), forms).toString("latin1");
}

/** Masks a stream. Only bytes that may be the beginning of a secret wait for what follows. */
export function maskStream(forms: readonly Buffer[]): Transform {
  const mask = new StreamMask(forms);
  return new Transform({
    transform(chunk: Buffer, _, done) {
      done(null, mask.push(chunk));
    },
    flush(done) {
      done(null, mask.end());
    },
  });
}
