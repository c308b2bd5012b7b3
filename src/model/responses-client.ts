import type OpenAI from "openai";
import { pause } from "../lib/pause.js";
import { retryAfterOf, retryDelayMs } from "./backoff.js";
import { type ClassifiedFailure, classifyRefusal, transportFailure } from "./failure.js";
import type { ModelClient, ModelEvent, ModelRequest } from "./model-client.js";
import type { ModelProvider } from "./provider.js";
import { type ModelSettings, requestBody } from "./request-body.js";
import { readResponseEvent } from "./response-events.js";
import { BrokenStream, readServerEvents } from "./server-events.js";

export interface ResponsesClientOptions {
  provider: ModelProvider;
  model: string;
  /** Tells the endpoint which requests belong together, for its cache. */
  threadId: string;
  settings?: ModelSettings | undefined;
  /** Default: brig. */
  userAgent?: string | undefined;
  /** From 0 up to but not including 1. Default: Math.random. */
  random?: (() => number) | undefined;
  /** Default: a timer. */
  sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

type Sdk = typeof import("openai");

/**
 * A model behind the Responses API. The SDK sends the request and reads its failures; its own retries are off, and its
 * stream reader is not used, since that ends at the first event that is not JSON.
 */
export function createResponsesClient(options: ResponsesClientOptions): ModelClient {
  const { provider, model } = options;
  let connection: Promise<Connection> | undefined;
  return {
    provider: provider.id,
    model,
    maxStreamRetries: provider.maxStreamRetries,
    async *stream(request, signal) {
      signal.throwIfAborted();
      connection ??= connect(options);
      const answer = await (await connection).send(request, signal);
      if ("kind" in answer) yield answer;
      else yield* readAnswer(answer, provider, signal);
    },
  };
}

interface Connection {
  /** The response, once its headers are there, or why it is worth asking again later. */
  send(request: ModelRequest, signal: AbortSignal): Promise<Response | (ModelEvent & { kind: "broken" })>;
}

async function connect(options: ResponsesClientOptions): Promise<Connection> {
  // Loading the SDK takes as long as starting Node: only who talks to an endpoint pays for it.
  const sdk = await import("openai");
  const client = openClient(sdk, options);
  const { provider, random = Math.random, sleep = pause } = options;
  return {
    async send(request, signal) {
      const body = requestBody(request, { ...options, settings: options.settings ?? {} });
      for (let attempt = 1; ; attempt++) {
        const answer = await post(sdk, client, { body, signal });
        if (answer instanceof Response) return answer;
        const { kind, error, canRetry, retryAfterMs } = answer;
        if (!canRetry) throw error;
        // A rate limit is for the turn to sit out: it keeps what the turn has done so far.
        if (kind === "rate-limit") return { kind: "broken", error, retryAfterMs };
        if (attempt > provider.maxRequestRetries) throw error;
        await sleep(retryDelayMs(attempt, { retryAfterMs, random }), signal);
      }
    },
  };
}

function openClient(
  { default: Client }: Sdk,
  { provider, threadId, userAgent = "brig" }: ResponsesClientOptions,
): OpenAI {
  return new Client({
    apiKey: provider.apiKey ?? "none",
    baseURL: provider.baseUrl,
    // Named, so that the SDK does not look for them in the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    logLevel: "off",
    maxRetries: 0,
    timeout: provider.streamIdleTimeoutMs,
    defaultQuery: { ...provider.query },
    defaultHeaders: {
      originator: "brig",
      session_id: threadId,
      "User-Agent": userAgent,
      ...(provider.apiKey === null ? { Authorization: null } : {}),
      ...provider.headers,
    },
  });
}

async function post(
  sdk: Sdk,
  client: OpenAI,
  { body, signal }: { body: ReturnType<typeof requestBody>; signal: AbortSignal },
): Promise<Response | ClassifiedFailure> {
  try {
    return await client.post("/responses", { body, stream: true, signal }).asResponse();
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof sdk.APIConnectionError)
      return transportFailure(connectionMessage(cause, client), cause);
    if (!(cause instanceof sdk.APIError)) throw cause;
    const { status, code, type, headers } = cause;
    const retryAfterMs = retryAfterOf(headers, Date.now());
    return classifyRefusal({ message: cause.message, status, code: code ?? type, retryAfterMs, cause });
  }
}

async function* readAnswer(
  response: Response,
  provider: ModelProvider,
  signal: AbortSignal,
): AsyncIterable<ModelEvent> {
  if (response.body === null) throw transportFailure("the endpoint answered without a body").error;
  try {
    const events = readServerEvents(response.body, { idleTimeoutMs: provider.streamIdleTimeoutMs });
    for await (const event of events) {
      const meaning = readResponseEvent(event);
      if (meaning !== null) yield meaning;
      if (meaning?.kind === "completed" || meaning?.kind === "broken") return;
    }
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof BrokenStream)) throw cause;
    yield broken(cause.message, cause);
    return;
  }
  signal.throwIfAborted();
  yield broken("stream closed before response.completed");
}

function broken(message: string, cause?: unknown): ModelEvent {
  return { kind: "broken", error: transportFailure(message, cause).error, retryAfterMs: null };
}

function connectionMessage(error: Error, client: OpenAI): string {
  const reason = error.cause instanceof Error ? innermost(error.cause).message : error.message;
  return `cannot reach ${client.baseURL}: ${reason}`;
}

/** fetch wraps the reason, and a name with several addresses fails with one error for each. */
function innermost(error: Error): Error {
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return inner instanceof Error ? innermost(inner) : error;
}
