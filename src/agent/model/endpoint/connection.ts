import { isBrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { LONGEST_TIMER_MS, pause } from "../../../lib/time/pause.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { BrokenResponse } from "../model-client.js";
import type { ModelProvider } from "../provider.js";
import { checkHeaders, isHeaderValue, Secrets } from "../secrets.js";
import { retryDelayMs } from "./backoff.js";
import { reasonOf } from "./exchange.js";
import { isLoopbackHost } from "./loopback.js";
import { type ClassifiedFailure, classifyRefusal, transportFailure } from "./model-failure.js";
import { type OpenAIClient, providerClient, type RequestSender } from "./openai-client.js";
import type { ReadRefusal } from "./refusal.js";

/** Where requests go, and in whose name. */
export interface ConnectionOptions {
  provider: ModelProvider;
  /** Sends the requests, with its own address, credentials, headers and proxies. Default: one for the provider. */
  client?: OpenAIClient | undefined;
  /** Tells the endpoint's cache which requests belong together. */
  threadId: string;
  /** Default: brig. */
  userAgent?: string | undefined;
  /** The client's name in the endpoint's statistics. Default: brig, also for an invalid header value. */
  originator?: string | undefined;
  /** Returns a number from 0 up to but not including 1. Default: Math.random. */
  random?: (() => number) | undefined;
  /** Default: a timer. */
  sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

export interface Route {
  sender(client: OpenAIClient): RequestSender;
  /** Fields that are no longer sent once the endpoint has refused them by name; `a.b` is `b` in `a`. */
  optionalFields: readonly string[];
}

type Body = Readonly<Record<string, unknown>>;

/** The caller shows longer waits: without a word a person would wonder what is going on. */
const LONGEST_SILENT_WAIT_MS = 5000;
const LONGEST_MESSAGE = 2000;

/** Sends requests, repeats those for which that makes sense, and reads why the endpoint refused one. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #route: Route;
  readonly #secrets = new Secrets();
  readonly #refusedFields = new Set<string>();
  readonly #client: OpenAIClient;

  constructor(options: ConnectionOptions, route: Route) {
    this.#options = options;
    this.#route = route;
    this.#client = options.client ?? providerClient(options.provider);
    this.#secrets.addHeaders(options.provider.headers);
    this.#secrets.addQuery(options.provider.query);
    this.#secrets.addQuery({ password: new URL(options.provider.baseUrl).password });
  }

  /** The text without secrets, shortened. Secrets are removed first: half of one would not be found. */
  redacted(text: string): string {
    // Some clients get their key only when they send, and get another one later.
    this.#secrets.addCredentials({ key: this.#options.client?.apiKey ?? "" });
    return this.#secrets.hide(text).slice(0, LONGEST_MESSAGE);
  }

  /** Returns the response, or `broken` if a later retry makes sense. Throws other failures. */
  async send(body: Body, signal: AbortSignal): Promise<Response | BrokenResponse> {
    const { provider, random = Math.random, sleep = pause } = this.#options;
    let hasRenewed = false;
    for (let attempt = 1; ; ) {
      const answer = await this.#post([...this.#refusedFields].reduce(withoutField, body), signal);
      if (answer instanceof Response) return answer;
      const { refusal, failure } = answer;
      if (refusal !== null && this.#dropRefusedField(refusal, body)) continue;
      if (refusal?.status === 401 && !hasRenewed) {
        hasRenewed = true;
        if (await provider.credentials.renew(signal)) continue;
      }
      const { kind, error, canRetry, retryAfterMs } = failure;
      if (!canRetry) throw error;
      const isLong = kind === "rate-limit" || (retryAfterMs ?? 0) > LONGEST_SILENT_WAIT_MS;
      const isLastAttempt = attempt > provider.maxRequestRetries;
      // A server on this machine that is not running is reported at once: further waiting would not start it.
      if (isLastAttempt && answer.isLocalServerDown) throw error;
      // The turn can show that it waits, and keeps its items so far.
      if (isLong || isLastAttempt || answer.isSilent)
        return { kind: "broken", error, retryAfterMs, isSilent: answer.isSilent };
      await beforeAbort(sleep(retryDelayMs(attempt, { retryAfterMs, random }), signal), signal);
      attempt++;
    }
  }

  async #post(body: Body, signal: AbortSignal): Promise<Response | Failed> {
    const { client, provider } = this.#options;
    const options =
      client === undefined ? { headers: await this.#ownHeaders(signal) } : this.#optionsForClient();
    using silence = new TimeLimit(provider.streamIdleTimeoutMs);
    try {
      const sent = this.#route
        .sender(this.#client)
        .create(body as never, { ...options, signal } as never)
        .asResponse();
      const response = await beforeAbort(sent, signal);
      signal.throwIfAborted();
      return response;
    } catch (error) {
      signal.throwIfAborted();
      const reason = reasonOf(error);
      // brig itself refuses the answer, and would refuse the next one.
      if (isBrigError(reason)) throw reason;
      return this.#failed(reason, { isSilent: silence.isOver });
    }
  }

  async #ownHeaders(signal: AbortSignal): Promise<Record<string, string>> {
    const { provider } = this.#options;
    const credentials = await provider.credentials.headers(signal);
    signal.throwIfAborted();
    this.#secrets.addCredentials(credentials);
    const headers = { ...credentials, ...provider.headers };
    checkHeaders(headers);
    return { ...ownHeaders(this.#options), ...inLowerCase(headers) };
  }

  /** A client of the package repeats requests by itself unless it is told not to. */
  #optionsForClient() {
    const { originator, session_id } = ownHeaders(this.#options);
    const { streamIdleTimeoutMs } = this.#options.provider;
    const timeout = Math.min(streamIdleTimeoutMs, LONGEST_TIMER_MS);
    return { headers: { originator, session_id }, timeout, maxRetries: 0 };
  }

  #failed(reason: ReadRefusal | Error, { isSilent }: { isSilent: boolean }): Failed {
    if (!(reason instanceof Error)) {
      const hint = reason.hint === undefined ? undefined : this.redacted(reason.hint);
      const refusal = { ...reason, message: this.redacted(reason.message), hint };
      const failure = classifyRefusal(this.#withPathHint(refusal));
      return { refusal, failure, isSilent: false, isLocalServerDown: false };
    }
    const { baseUrl, streamIdleTimeoutMs } = this.#options.provider;
    const first = firstOf(reason);
    const isLocalServerDown =
      "code" in first && first.code === "ECONNREFUSED" && isLoopbackHost(new URL(baseUrl).hostname);
    const why = isSilent ? `no answer within ${streamIdleTimeoutMs} ms` : first.message;
    const hint = isLocalServerDown
      ? `nothing listens at ${new URL(baseUrl).host}: is it running?`
      : undefined;
    const failure = transportFailure(this.redacted(`cannot reach ${baseUrl}: ${why}`), {
      cause: reason,
      hint,
    });
    return { refusal: null, failure, isSilent, isLocalServerDown };
  }

  /** An endpoint that does not know the path most likely supports only Chat Completions. */
  #withPathHint(refusal: ReadRefusal): ReadRefusal {
    const { id, wireApi } = this.#options.provider;
    const isUnknownPath = refusal.status === 404 || refusal.status === 405;
    if (!isUnknownPath || wireApi !== "responses" || id === "openai") return refusal;
    return {
      ...refusal,
      hint: `check base_url and model; an endpoint without the Responses API needs wire_api = "chat" in [model_providers.${id}]`,
    };
  }

  /** Whether the endpoint refused an optional field, which is left out from now on. */
  #dropRefusedField({ status, param, message }: ReadRefusal, body: Body): boolean {
    if (status !== 400 && status !== 422) return false;
    const field = this.#route.optionalFields.find(
      (name) =>
        withoutField(body, name) !== body &&
        !this.#refusedFields.has(name) &&
        (param === name || new RegExp(`(?<!\\w)${name.replace(".", "\\.")}(?!\\w)`).test(message)),
    );
    if (field === undefined) return false;
    this.#refusedFields.add(field);
    return true;
  }
}

/** Returns the same object if it has no such field. */
function withoutField(body: Body, field: string): Body {
  const [name = "", inner] = field.split(".");
  if (!(name in body)) return body;
  const { [name]: value, ...rest } = body;
  if (inner === undefined) return rest;
  if (typeof value !== "object" || value === null) return body;
  const left = withoutField(value as Body, inner);
  return left === value ? body : { ...body, [name]: left };
}

interface Failed {
  failure: ClassifiedFailure;
  refusal: ReadRefusal | null;
  isSilent: boolean;
  isLocalServerDown: boolean;
}

function ownHeaders({ threadId, userAgent = "brig", originator = "brig" }: ConnectionOptions) {
  return {
    accept: "application/json",
    "content-type": "application/json",
    "user-agent": userAgent,
    originator: isHeaderValue(originator) ? originator : "brig",
    session_id: threadId,
  };
}

/**
 * Writes the names in lower case, so that a configured header replaces brig's own header of that name,
 * however it is capitalised.
 */
function inLowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** A host name with several addresses fails with one error for each address. */
function firstOf(error: Error): Error {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return first instanceof Error ? first : error;
}
