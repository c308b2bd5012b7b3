import { z } from "zod";
import { readProxies } from "../../../lib/proxy/proxies.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { boundedFetch } from "../login/issuer/bounded-fetch.js";
import type { ModelProvider } from "../provider.js";
import { isAzure } from "./endpoint-quirks.js";
import { addressOf } from "./exchange.js";

const TIMEOUT_MS = 5000;
const MOST_MODELS = 5000;

/** OpenAI's form, which nearly all have, and that of ChatGPT's endpoint. */
const listing = z.object({
  data: z
    .array(z.object({ id: z.string() }))
    .max(MOST_MODELS)
    .optional(),
  models: z
    .array(z.object({ slug: z.string() }))
    .max(MOST_MODELS)
    .optional(),
});

/**
 * The names of the models that an endpoint says it has. Null if it does not say, which is no error: many have no such list. An
 * abort of `signal` is one.
 */
export async function listModels(
  provider: ModelProvider,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  // Azure lists what could be deployed, not what is.
  if (isAzure(provider)) return null;
  using limit = new TimeLimit(TIMEOUT_MS, signal);
  try {
    const headers = { ...(await provider.credentials.headers(limit.signal)), ...provider.headers };
    const fetchList = boundedFetch(limit.signal, readProxies(provider.proxyVariables ?? {}));
    const answer = await fetchList(addressOf(provider, "/models").href, {
      ...{ method: "GET", headers, body: undefined },
      // Another host must not get the credentials.
      redirect: "manual",
    });
    if (!answer.ok) return null;
    const { data = [], models = [] } = listing.parse(await answer.json());
    const names = [...data.map(({ id }) => id), ...models.map(({ slug }) => slug)];
    const usable = names.filter((name) => /^[\x21-\x7e]{1,200}$/.test(name));
    return usable.length === 0 ? null : [...new Set(usable)];
  } catch {
    signal.throwIfAborted();
    return null;
  }
}
