import type { Readable } from "node:stream";
import { base64Of, SpelledSearch, SpelledTexts } from "../secrets/spelled.js";
import type { Canary } from "./new-canary.js";

/**
 * Looks for canaries: as they are, reversed, in Base64, in hexadecimal, and in the encodings of URLs, JSON and HTML. One that
 * is compressed, encrypted or sent in parts is not found.
 */
export class CanarySearch {
  /** Each value, and each reversed, with the name of its canary. */
  readonly #sought: readonly { name: string; value: string }[];
  readonly #texts: SpelledTexts;
  /** Forms that can occur in the name of a host: only letters and digits, in lower case. */
  readonly #inNames: readonly { name: string; text: string }[];

  constructor(canaries: readonly Canary[]) {
    this.#sought = canaries.flatMap(({ name, values }) =>
      values
        .flatMap((value) => [value, value.split("").reverse().join("")])
        .map((value) => ({ name, value })),
    );
    this.#texts = new SpelledTexts(this.#sought.map(({ value }) => value));
    this.#inNames = this.#sought.flatMap(({ name, value }) =>
      [value, encodeURIComponent(value), Buffer.from(value).toString("hex"), ...base64Of(value)].map(
        (form) => ({ name, text: squeezed(form) }),
      ),
    );
  }

  /** The name of a canary that is in the data; null if there is none. */
  findIn(data: Buffer): string | null {
    let found: string | null = null;
    this.#search((name) => {
      found ??= name;
    }).scan(data);
    return found;
  }

  #search(onFound: (name: string) => void): SpelledSearch {
    return new SpelledSearch(this.#texts, (_start, _end, text) => onFound(this.#sought[text]?.name ?? ""));
  }

  /** Searches texts of a request, such as its URL and its headers, also where characters are percent-encoded. */
  findInTexts(texts: readonly string[]): string | null {
    const text = texts.join("\n");
    return this.findIn(Buffer.from(text, "latin1")) ?? this.findIn(percentDecoded(text));
  }

  /** Searches the name of a host, which may be in another case and cut into labels. */
  findInName(host: string): string | null {
    const squeezedHost = squeezed(host);
    return this.#inNames.find(({ text }) => squeezedHost.includes(text))?.name ?? null;
  }

  /**
   * Looks at what comes out of a stream, wherever it is cut. `onFound` is called before those who listen later get
   * the last part of it.
   */
  watch(stream: Readable, onFound: (name: string) => void): void {
    const found = new Set<string>();
    const search = this.#search((name) => found.add(name));
    const look = (chunk: Buffer) => {
      search.scan(chunk);
      const [name] = found;
      if (name === undefined) return;
      stream.off("data", look);
      onFound(name);
    };
    stream.on("data", look);
  }
}

function squeezed(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Decodes also bytes that are not UTF-8, and leaves a % that begins nothing. */
function percentDecoded(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, "latin1");
}
