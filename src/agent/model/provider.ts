/**
 * The caller's credentials. brig waits for both methods even after an abort, so that an implementation can
 * store a token for which it has just given up the old one.
 */
export interface Credentials {
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Called after a 401. Returns true if there are new credentials, to send the request once more. */
  renew(signal: AbortSignal): Promise<boolean>;
}

/** `responses` is the Responses API, `chat` is Chat Completions. */
export type WireApi = "responses" | "chat";

/** An endpoint of models, and how to use it. */
export interface ModelProvider {
  /** The id as in `[model_providers.<id>]`. */
  id: string;
  wireApi: WireApi;
  /** The part of the address before `/responses` or `/chat/completions`. */
  baseUrl: string;
  credentials: Credentials;
  /** Added to every request. They override those of the credentials. */
  headers: Readonly<Record<string, string>>;
  /** Query parameters, added to the address of every request. */
  query: Readonly<Record<string, string>>;
  /** How often a request that got no answer is sent again. */
  maxRequestRetries: number;
  /** How often a response that broke off is requested again. */
  maxStreamRetries: number;
  /** The longest time between two events of a response. Comments and parts of events do not count. */
  streamIdleTimeoutMs: number;
  /**
   * The variables that name the proxies of its requests: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, also in lower case.
   * Default: none.
   */
  proxyVariables?: Readonly<Record<string, string | undefined>> | undefined;
  /** How long one response may take, from its request to its end. Default: one hour. */
  responseTimeoutMs?: number | undefined;
}
