/**
 * What an endpoint knows the caller by. At an abort both end as soon as they can: who is about to get a new
 * token for the old one has to keep it first. So they are waited for.
 */
export interface Credentials {
  /** Header values for the next request, e.g. Authorization. */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** After a 401: true when other credentials are there and the request is worth one more try. */
  renew(signal: AbortSignal): Promise<boolean>;
}

/** The Responses API, or Chat Completions. */
export type WireApi = "responses" | "chat";

/** Where a model is reached and how. */
export interface ModelProvider {
  /** As in `[model_providers.<id>]`. */
  id: string;
  wireApi: WireApi;
  /** Up to and without `/responses` or `/chat/completions`. */
  baseUrl: string;
  credentials: Credentials;
  /** Added to every request, above those of the credentials. */
  headers: Readonly<Record<string, string>>;
  /** Added to the address of every request. */
  query: Readonly<Record<string, string>>;
  /** How often a request that got no answer is sent again. */
  maxRequestRetries: number;
  /** How often a response that broke off is asked for again. */
  maxStreamRetries: number;
  /** A response without an event for so long counts as broken off; comments and half an event do not count. */
  streamIdleTimeoutMs: number;
  /** One response may take so long, from its request to its end. Default: an hour. */
  responseTimeoutMs?: number | undefined;
}
