import type { CustomFetch } from "openid-client";
import { proxiedFetch } from "../../../../lib/proxy/proxied-fetch.js";
import { NO_PROXIES, type Proxies } from "../../../../lib/proxy/proxies.js";
import { AnySignal } from "../../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../../lib/time/before-abort.js";

const maxBytes = 1024 * 1024;

/** `fetch` for an issuer that may be hostile. A too long answer is an error; an abort of `signal` ends it. */
export function boundedFetch(signal?: AbortSignal, proxies: Proxies = NO_PROXIES): CustomFetch {
  return async (url, options) => {
    using ends = new AnySignal([signal, options.signal]);
    // Node's `fetch` may miss an abort that happens while the body arrives.
    return await beforeAbort(fetchWhole(url, { ...options, signal: ends.signal }, proxies), ends.signal);
  };
}

async function fetchWhole(url: string, options: RequestInit, proxies: Proxies): Promise<Response> {
  const response = await proxiedFetch(url, options, proxies);
  const { status, statusText, headers } = response;
  if (response.body === null) return response;
  // The whole body is read within the request, so that the request's timeout also ends an endless answer.
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw new RangeError(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks), { status, statusText, headers });
}
