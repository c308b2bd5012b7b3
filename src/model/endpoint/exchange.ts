import { readProxies } from "../../lib/proxy/proxies.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { ModelProvider } from "../provider.js";
import { postJson } from "./http-fetch.js";
import { type ReadRefusal, readBody, readRefusal } from "./refusal.js";

/**
 * Why there is no answer: the endpoint's refusal, or an error. The `openai` package reads neither: it knows one format of refusals,
 * and takes any error for a timeout whose message or cause sounds like one.
 */
class Unanswered extends Error {
  readonly reason: ReadRefusal | Error;

  constructor(reason: ReadRefusal | Error) {
    super("no answer");
    this.reason = reason;
  }
}

/**
 * `fetch` for brig's own client. The idle timeout limits the time until the response begins, and until all of a refusal has arrived.
 * Error: `Unanswered`.
 */
export async function exchange(
  url: URL,
  { provider, init = {} }: { provider: ModelProvider; init: RequestInit | undefined },
): Promise<Response> {
  const { query, streamIdleTimeoutMs, proxyVariables = {} } = provider;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  using limit = new TimeLimit(streamIdleTimeoutMs);
  const answer = await postJson(url, {
    headers: init.headers as Readonly<Record<string, string>>,
    body: init.body as string,
    signal: init.signal as AbortSignal,
    silence: limit.signal,
    proxies: readProxies(proxyVariables),
  }).catch(errorOf);
  if (answer instanceof Error) throw new Unanswered(answer);
  if (answer.ok) return answer;
  throw new Unanswered(readRefusal(answer.status, answer.headers, await readBody(answer)));
}

/** Why a client got no answer. One that is not brig's own has read the refusal itself. */
export function reasonOf(error: unknown): ReadRefusal | Error {
  if (error instanceof Unanswered) return error.reason;
  if (!(error instanceof Error)) return errorOf(error);
  const { status, headers, error: said } = error as Error & Partial<Record<string, unknown>>;
  if (typeof status === "number")
    return readRefusal(status, new Headers(headers as Headers | undefined), JSON.stringify({ error: said }));
  return error.cause instanceof Error ? reasonOf(error.cause) : error;
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
