import type { IncomingMessage } from "node:http";
import { requestOpener } from "./open-request.js";
import { type Proxies, proxyFor } from "./proxies.js";
import { responseOf } from "./response-of.js";

/**
 * `fetch`, through the proxy of the environment if there is one for the URL. Unlike `fetch`, a request through a proxy follows no
 * redirects and asks for no compression.
 */
export async function proxiedFetch(
  url: string | URL,
  init: RequestInit,
  proxies: Proxies,
): Promise<Response> {
  if (proxyFor(proxies, new URL(url)) === null) return await fetch(url, init);
  const wanted = new Request(url, init);
  const body = Buffer.from(await wanted.arrayBuffer());
  const { method, signal } = wanted;
  signal.throwIfAborted();
  const open = await requestOpener(new URL(url), {
    ...{ method, proxies, signal },
    headers: {
      ...Object.fromEntries(wanted.headers),
      ...((body.length > 0 || !["GET", "HEAD"].includes(method)) && {
        "content-length": String(body.length),
      }),
    },
  });
  return await new Promise((resolve, reject) => {
    const request = open();
    let answer: IncomingMessage | null = null;
    const breakOff = () => {
      answer?.destroy(signal.reason);
      reject(signal.reason);
    };
    signal.addEventListener("abort", breakOff, { once: true });
    request.once("response", (incoming) => {
      answer = incoming;
      incoming.once("close", () => signal.removeEventListener("abort", breakOff));
      try {
        resolve(responseOf(incoming));
      } catch (error) {
        request.destroy();
        reject(error);
      }
    });
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed without an answer")));
    request.end(body);
  });
}
