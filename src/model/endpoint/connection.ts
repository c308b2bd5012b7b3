import type OpenAI from "openai";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { LONGEST_TIMER_MS, pause } from "../../lib/time/pause.js";
import type { BrokenResponse } from "../model-client.js";
import type { ModelProvider } from "../provider.js";
import { checkHeaders, isHeaderValue, Secrets } from "../secrets.js";
import { retryDelayMs } from "./backoff.js";
import { httpFetch } from "./http-fetch.js";
import { isLoopbackHost } from "./loopback.js";
import { type ClassifiedFailure, classifyRefusal, transportFailure } from "./model-failure.js";
import { type ReadRefusal, readBody, readRefusal } from "./refusal.js";

/** Where requests go, and in whose name. */
export interface ConnectionOptions {
  provider: ModelProvider;
  /** Tells the endpoint which requests belong together, for its cache. */
  threadId: string;
  /** Default: brig. */
  userAgent?: string | undefined;
  /** Who is asking, for the endpoint's own statistics; left out where no header could say it. Default: brig. */
  originator?: string | undefined;
  /** From 0 up to but not including 1. Default: Math.random. */
  random?: (() => number) | undefined;
  /** Default: a timer. */
  sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** Where on an endpoint requests go. */
export interface Route {
  /** E.g. `/responses`. */
  path: string;
  /**
   * Fields of a body that an endpoint may do without: one that refuses them by name is not sent them again. `a.b` is a field of the
   * field `a`.
   */
  optionalFields: readonly string[];
}

type Body = Readonly<Record<string, unknown>>;

/** A person would ask what is going on. */
const LONGEST_SILENT_WAIT_MS = 5000;
const LONGEST_MESSAGE = 2000;

/**
 * Sends requests through the SDK, which makes them what an endpoint expects. When to send one again is decided here: the SDK's own
 * retries are off, and its reading of refusals, which knows OpenAI's form only, is not used.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #route: Route;
  readonly #secrets = new Secrets();
  /** Fields that this endpoint refused. */
  readonly #unwanted = new Set<string>();
  #client: Promise<OpenAI> | undefined;

  constructor(options: ConnectionOptions, route: Route) {
    this.#options = options;
    this.#route = route;
    this.#secrets.addHeaders(options.provider.headers);
    this.#secrets.addQuery(options.provider.query);
    this.#secrets.addQuery({ password: new URL(options.provider.baseUrl).password });
  }

  /** What an endpoint said, as far as anybody reads it, without what it must not tell anybody: half a secret would not be found. */
  tellable(text: string): string {
    return this.#secrets.hide(text).slice(0, LONGEST_MESSAGE);
  }

  /** The response, once its headers are there, or why it is worth asking again later. Other failures are thrown as `model.*`. */
  async send(body: Body, signal: AbortSignal): Promise<Response | BrokenResponse> {
    const { provider, random = Math.random, sleep = pause } = this.#options;
    let hasRenewed = false;
    for (let attempt = 1; ; ) {
      const answer = await this.#post(this.#withoutUnwanted(body), signal);
      if (answer instanceof Response) return answer;
      const { refusal, failure } = answer;
      if (refusal !== null && this.#dropField(refusal, body)) continue;
      if (refusal?.status === 401 && !hasRenewed) {
        hasRenewed = true;
        if (await provider.credentials.renew(signal)) continue;
      }
      const { kind, error, canRetry, retryAfterMs } = failure;
      if (!canRetry) throw error;
      const isLong = kind === "rate-limit" || (retryAfterMs ?? 0) > LONGEST_SILENT_WAIT_MS;
      const isLastAttempt = attempt > provider.maxRequestRetries;
      // What is not running on this machine does not come up by being asked more often.
      if (isLastAttempt && answer.isRefusedHere) throw error;
      // For the turn to sit out: it keeps what it has done so far, and tells that it waits.
      if (isLong || isLastAttempt || answer.isSilent)
        return { kind: "broken", error, retryAfterMs, isSilent: answer.isSilent };
      await beforeAbort(sleep(retryDelayMs(attempt, { retryAfterMs, random }), signal), signal);
      attempt++;
    }
  }

  async #post(body: Body, signal: AbortSignal): Promise<Response | Failed> {
    const { provider } = this.#options;
    const client = await this.#openClient();
    const credentials = await provider.credentials.headers(signal);
    signal.throwIfAborted();
    this.#secrets.addCredentials(credentials);
    const headers = { ...credentials, ...provider.headers };
    checkHeaders(headers);
    try {
      const sent = client.post(this.#route.path, { body, headers, stream: true, signal }).asResponse();
      return await beforeAbort(sent, signal);
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.cause : undefined;
      if (!(reason instanceof Unanswered)) throw error;
      return this.#failed(reason);
    }
  }

  #failed({ reason }: Unanswered): Failed {
    if (!(reason instanceof Error)) {
      const hint = reason.hint === undefined ? undefined : this.tellable(reason.hint);
      const refusal = { ...reason, message: this.tellable(reason.message), hint };
      const failure = classifyRefusal(this.#withWireHint(refusal));
      return { refusal, failure, isSilent: false, isRefusedHere: false };
    }
    const { baseUrl, streamIdleTimeoutMs } = this.#options.provider;
    const isSilent = reason.name === "AbortError";
    const first = firstOf(reason);
    const isRefusedHere =
      "code" in first && first.code === "ECONNREFUSED" && isLoopbackHost(new URL(baseUrl).hostname);
    const why = isSilent ? `no answer within ${streamIdleTimeoutMs} ms` : first.message;
    const hint = isRefusedHere ? `nothing listens at ${new URL(baseUrl).host}: is it running?` : undefined;
    const failure = transportFailure(this.tellable(`cannot reach ${baseUrl}: ${why}`), {
      cause: reason,
      hint,
    });
    return { refusal: null, failure, isSilent, isRefusedHere };
  }

  /** An endpoint that has never heard of the path most likely speaks the older API only. */
  #withWireHint(refusal: ReadRefusal): ReadRefusal {
    const { id, wireApi } = this.#options.provider;
    const isUnknownPath = refusal.status === 404 || refusal.status === 405;
    if (!isUnknownPath || wireApi !== "responses" || id === "openai") return refusal;
    return {
      ...refusal,
      hint: `check base_url and model; an endpoint without the Responses API wants wire_api = "chat" in [model_providers.${id}]`,
    };
  }

  #withoutUnwanted(body: Body): Body {
    return [...this.#unwanted].reduce(withoutField, body);
  }

  /** Whether a field was refused that can be left out from now on. */
  #dropField({ status, param, message }: ReadRefusal, body: Body): boolean {
    if (status !== 400 && status !== 422) return false;
    const field = this.#route.optionalFields.find(
      (name) =>
        hasField(body, name) &&
        !this.#unwanted.has(name) &&
        (param === name || new RegExp(`(?<!\\w)${name.replace(".", "\\.")}(?!\\w)`).test(message)),
    );
    if (field === undefined) return false;
    this.#unwanted.add(field);
    return true;
  }

  #openClient(): Promise<OpenAI> {
    this.#client ??= openClient(this.#options);
    return this.#client;
  }
}

function hasField(body: Body, field: string): boolean {
  return withoutField(body, field) !== body;
}

/** The same body where it has no such field. */
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
  /** Null where the endpoint said nothing. */
  refusal: ReadRefusal | null;
  /** It took the request, and said nothing for as long as it may. */
  isSilent: boolean;
  /** No program listens at an address of this machine. */
  isRefusedHere: boolean;
}

/** Carries through the SDK why there is no response: what the endpoint said, or what went wrong on the way. */
class Unanswered extends Error {
  override readonly name = "Unanswered";
  readonly reason: ReadRefusal | Error;

  constructor(reason: ReadRefusal | Error) {
    super("no answer");
    this.reason = reason;
  }
}

async function openClient(options: ConnectionOptions): Promise<OpenAI> {
  const { provider, threadId, userAgent = "brig", originator = "brig" } = options;
  // Loading the SDK takes as long as starting Node: only who talks to an endpoint pays for it.
  const { default: Client } = await import("openai");
  return new Client({
    // The SDK wants one; the header is left out, for the provider's credentials to give.
    apiKey: "none",
    baseURL: provider.baseUrl,
    // Named, so that the SDK does not look for them in the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    logLevel: "off",
    maxRetries: 0,
    timeout: Math.min(provider.streamIdleTimeoutMs, LONGEST_TIMER_MS),
    fetch: fetchAnswer,
    defaultQuery: { ...provider.query },
    defaultHeaders: {
      originator: isHeaderValue(originator) ? originator : "brig",
      session_id: threadId,
      "User-Agent": userAgent,
      Authorization: null,
    },
  });
}

async function fetchAnswer(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await httpFetch(url, init);
  } catch (error) {
    // biome-ignore lint/style/useErrorCause: it is the reason, and the SDK would take one in `cause` for a timeout.
    throw new Unanswered(error instanceof Error ? error : new Error(String(error)));
  }
  if (response.ok) return response;
  throw new Unanswered(readRefusal(response.status, response.headers, await readBody(response)));
}

/** A name with several addresses fails with one error for each. */
function firstOf(error: Error): Error {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return first instanceof Error ? first : error;
}
