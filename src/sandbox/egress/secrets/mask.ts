import { Transform } from "node:stream";
import { SpelledSearch } from "./spelled/spelled-search.js";
import type { SpelledTexts } from "./spelled/spelled-texts.js";
import { coverIn, StreamMask } from "./stream-mask.js";

/** Replaces each of the texts by as many asterisks as it has bytes, in place, and returns the data. */
export function maskIn(data: Buffer, texts: SpelledTexts): Buffer {
  // Nothing is covered before the search has passed it.
  new SpelledSearch(texts, coverIn(data)).scan(data);
  return data;
}

/** One character stands for one byte. */
export function maskText(text: string, texts: SpelledTexts): string {
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
