import type { Readable } from "node:stream";
import { formsOf } from "../secrets/mask.js";
import type { Canary } from "./new-canary.js";

interface Sought {
  name: string;
  /** In bytes. */
  form: Buffer;
  /** As it can be in the name of a host: only letters and digits, in lower case. */
  inName: string;
}

/**
 * Looks for canaries: as they are, reversed, in Base64, in hexadecimal, and in the encodings of URLs and JSON. One that is
 * compressed, encrypted or sent in parts is not found.
 */
export class CanarySearch {
  readonly #sought: readonly Sought[];
  readonly #longest: number;

  constructor(canaries: readonly Canary[]) {
    this.#sought = canaries.flatMap(({ name, values }) =>
      values
        .flatMap((value) => [value, value.split("").reverse().join("")])
        .flatMap(formsOf)
        .map((form) => ({ name, form, inName: squeezed(form.toString("latin1")) })),
    );
    this.#longest = Math.max(...this.#sought.map(({ form }) => form.length));
  }

  /** The name of a canary that is in the data; null if there is none. */
  findIn(data: Buffer): string | null {
    return this.#sought.find(({ form }) => data.includes(form))?.name ?? null;
  }

  /** In texts of a request, such as its URL and its headers, also where characters are percent-encoded. */
  findInTexts(texts: readonly string[]): string | null {
    const text = texts.join("\n");
    return this.findIn(Buffer.from(text, "latin1")) ?? this.findIn(percentDecoded(text));
  }

  /** In the name of a host, which may be in another case and cut into labels. */
  findInName(host: string): string | null {
    const squeezedHost = squeezed(host);
    return this.#sought.find(({ inName }) => squeezedHost.includes(inName))?.name ?? null;
  }

  /**
   * Looks at what comes out of a stream, wherever it is cut. `onFound` is called before those who listen later get
   * the last part of it.
   */
  watch(stream: Readable, onFound: (name: string) => void): void {
    let tail: Buffer = Buffer.alloc(0);
    const look = (chunk: Buffer) => {
      const data = Buffer.concat([tail, chunk]);
      const name = this.findIn(data);
      tail = data.subarray(Math.max(0, data.length - this.#longest + 1));
      if (name === null) return;
      stream.off("data", look);
      onFound(name);
    };
    stream.on("data", look);
  }
}

function squeezed(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Also what is not UTF-8, or has a % that begins nothing. */
function percentDecoded(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, "latin1");
}
