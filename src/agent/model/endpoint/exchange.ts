import { readProxies } from "../../../lib/proxy/proxies.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { ModelProvider } from "../provider.js";
import { type JsonPost, postJson } from "./http-fetch.js";
import { type ReadRefusal, readBody, readRefusal } from "./refusal.js";

/** Why there is no answer: the endpoint's refusal, or an error. */
class Unanswered extends Error {
  readonly reason: ReadRefusal | Error;

  constructor(reason: ReadRefusal | Error) {
    super("no answer");
    this.reason = reason;
  }
}

interface Exchange extends Pick<JsonPost, "headers" | "body" | "signal"> {
  provider: ModelProvider;
}

/**
 * One request to a provider of the configuration. The idle timeout limits the time until the response begins, and until all of a refusal
 * has arrived. Error: `Unanswered`.
 */
export async function exchange(path: string, { provider, ...post }: Exchange): Promise<Response> {
  const { streamIdleTimeoutMs, proxyVariables = {} } = provider;
  using limit = new TimeLimit(streamIdleTimeoutMs);
  const proxies = readProxies(proxyVariables);
  const answer = await postJson(addressOf(provider, path), { ...post, silence: limit.signal, proxies }).catch(
    errorOf,
  );
  if (answer instanceof Error) throw new Unanswered(answer);
  if (answer.ok) return answer;
  throw new Unanswered(readRefusal(answer.status, answer.headers, await readBody(answer)));
}

/** The address of an API of a provider. */
export function addressOf({ baseUrl, query }: ModelProvider, path: string): URL {
  const url = new URL(baseUrl + (baseUrl.endsWith("/") ? path.slice(1) : path));
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
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
