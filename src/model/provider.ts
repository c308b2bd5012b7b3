/** Where a model is reached and how. */
export interface ModelProvider {
  /** As in `[model_providers.<id>]`. */
  id: string;
  baseUrl: string;
  /** Null for an endpoint that wants none. */
  apiKey: string | null;
  headers: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** How often a request that got no answer is sent again. */
  maxRequestRetries: number;
  /** How often a response that broke off is asked for again. */
  maxStreamRetries: number;
  /** A response that says nothing for so long counts as broken off. */
  streamIdleTimeoutMs: number;
}
