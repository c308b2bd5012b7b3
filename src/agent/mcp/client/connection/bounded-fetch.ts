import { BrigError } from "../../../../errors.js";
import { formatBytes } from "../../../../lib/bytes.js";
import { proxiedFetch } from "../../../../lib/proxy/proxied-fetch.js";
import { NO_PROXIES } from "../../../../lib/proxy/proxies.js";
import type { HttpServerSettings } from "../server-settings.js";
import { MAX_MESSAGE_BYTES } from "./stdio-transport.js";

const lineFeed = 10;
const carriageReturn = 13;

/**
 * Returns a `fetch` for one server. It adds the server's token and headers, contacts no other origin, and
 * fails if a body, or one event of a stream, is longer than a message may be. Error: `config.invalid` if HTTP
 * does not allow a header.
 */
export function boundedFetch(
  settings: Pick<HttpServerSettings, "url" | "bearerToken" | "headers" | "proxies">,
): typeof fetch {
  const { origin } = new URL(settings.url);
  const configured = configuredHeaders(settings);
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== origin)
      throw new Error(`the server leads to another origin, ${url.origin}, which is not followed`);
    const headers = new Headers(configured);
    for (const [name, value] of new Headers(init?.headers))
      if (name !== "authorization" || settings.bearerToken === null) headers.set(name, value);
    const wanted = { ...init, headers, redirect: "manual" } as const;
    const response = await proxiedFetch(url, wanted, settings.proxies ?? NO_PROXIES);
    if (response.body === null) return response;
    const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    const sizes = new MessageSizes();
    const isTooLarge = (chunk: Uint8Array) =>
      (isStream ? sizes.ofEvents(chunk) : sizes.ofBody(chunk)) > MAX_MESSAGE_BYTES;
    const { status, statusText } = response;
    return new Response(bounded(response.body, isTooLarge), {
      status,
      statusText,
      headers: response.headers,
    });
  };
}

function configuredHeaders({
  headers,
  bearerToken,
}: Pick<HttpServerSettings, "headers" | "bearerToken">): Headers {
  const configured = new Headers();
  const all = Object.entries(headers);
  if (bearerToken !== null) all.push(["authorization", `Bearer ${bearerToken}`]);
  for (const [name, value] of all) {
    if (!isAllowed(name, value))
      throw new BrigError(
        `its header ${JSON.stringify(name)} has a character that HTTP does not allow there`,
        {
          code: "config.invalid",
          hint: "check http_headers, and the variables that env_http_headers and bearer_token_env_var name",
        },
      );
    configured.set(name, value);
  }
  return configured;
}

/** Drops the error of `Headers`: it quotes the value, which may be a secret. */
function isAllowed(name: string, value: string): boolean {
  try {
    new Headers().set(name, value);
    return true;
  } catch {
    return false;
  }
}

function bounded(
  body: ReadableStream<Uint8Array>,
  isTooLarge: (chunk: Uint8Array) => boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else if (isTooLarge(value))
          throw new Error(`the server sent a message of more than ${formatBytes(MAX_MESSAGE_BYTES)}`);
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        await reader.cancel(error).catch(() => undefined);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Counts the bytes of a body, or of each event of a stream. An event ends with a blank line. */
class MessageSizes {
  #bytes = 0;
  #isBlankLine = true;
  #last = 0;

  /** Returns the size of the body so far. */
  ofBody(chunk: Uint8Array): number {
    this.#bytes += chunk.length;
    return this.#bytes;
  }

  /** Returns the size of the largest event that has a part in this chunk, as far as it has come. */
  ofEvents(chunk: Uint8Array): number {
    let largest = 0;
    for (const byte of chunk) {
      this.#bytes += 1;
      const isSameLineEnd = byte === lineFeed && this.#last === carriageReturn;
      this.#last = byte;
      if (byte !== lineFeed && byte !== carriageReturn) this.#isBlankLine = false;
      else if (!isSameLineEnd) {
        largest = Math.max(largest, this.#bytes);
        if (this.#isBlankLine) this.#bytes = 0;
        this.#isBlankLine = true;
      }
    }
    return Math.max(largest, this.#bytes);
  }
}
