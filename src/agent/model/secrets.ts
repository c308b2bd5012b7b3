import { BrigError } from "../../errors.js";

const SHORTEST_SECRET = 4;
const SHORTEST_HEADER = 8;
/** Endpoints often quote the beginning and end of a key, such as `sk-ab***yz`. */
const quotedKey = /\bsk-[\w*.-]{6,}/g;
const secretName = /key|token|secret|pass|auth|sig|cookie/i;
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Collects the secrets of an endpoint and removes them from texts that are shown. */
export class Secrets {
  readonly #values = new Set<string>();

  addCredentials(headers: Readonly<Record<string, string>>): void {
    for (const value of Object.values(headers))
      for (const part of [value, value.slice(value.indexOf(" ") + 1)])
        if (part.length >= SHORTEST_SECRET) this.#values.add(part);
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers))
      if (value.length >= (secretName.test(name) ? SHORTEST_SECRET : SHORTEST_HEADER))
        this.#values.add(value);
  }

  addQuery(query: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(query))
      if (secretName.test(name) && value.length >= SHORTEST_SECRET) this.#values.add(value);
  }

  hide(text: string): string {
    const longestFirst = [...this.#values].toSorted((a, b) => b.length - a.length);
    return longestFirst
      .reduce((hidden, secret) => hidden.replaceAll(secret, "***"), text)
      .replaceAll(quotedKey, "***");
  }
}

export function isHeaderValue(text: string): boolean {
  return headerValue.test(text);
}

/** Error: `config.invalid`, which names the header only. Node's own error would quote the value. */
export function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!headerName.test(name)) throw invalid(`${JSON.stringify(name)} is not a valid header name`);
    if (!isHeaderValue(value))
      throw invalid(`the value of the header ${name} has a character that is not allowed in headers`);
  }
}

function invalid(message: string): BrigError {
  return new BrigError(message, {
    code: "config.invalid",
    hint: "look for line breaks and letters with accents in the key, http_headers and env_http_headers",
  });
}
