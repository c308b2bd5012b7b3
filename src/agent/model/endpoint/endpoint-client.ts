import type { BrigError } from "../../../errors.js";
import { formatDuration } from "../../../lib/time/durations.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { ModelClient, ModelEvent, ModelRequest } from "../model-client.js";
import type { ModelSettings } from "../model-settings.js";
import { Connection, type ConnectionOptions, type Route } from "./connection.js";
import { classifyRefusal, type Refusal, transportFailure, unusableResponse } from "./model-failure.js";
import { readServerEvents } from "./server-events.js";
import { BrokenStream, DamagedStream, SilentStream } from "./stream-event.js";

/** Models with long reasoning answer within half of it. */
const DEFAULT_RESPONSE_TIMEOUT_MS = 3_600_000;

/** The provider, the model and its settings for a client of an endpoint. */
export interface ModelClientOptions extends ConnectionOptions {
  model: string;
  settings?: ModelSettings | undefined;
}

/** The request and response formats of one wire API. */
export interface Wire extends Route {
  takesOnlyFunctions: boolean;
  body(request: ModelRequest): Readonly<Record<string, unknown>>;
  /** Loads the code that reads a response, which no request has to wait for. */
  openReader(request: ModelRequest, refused: RefusalReader): Promise<ResponseReader>;
}

/** Returns `broken` for an error in the stream that is worth a retry; throws any other. */
export type RefusalReader = (refusal: Refusal) => ModelEvent;

/** Reads one response, up to `completed` or `broken`. A failure that a retry cannot fix is thrown. */
export interface ResponseReader {
  /** Throws `BrokenStream` for data that must not be skipped, and cannot be read; then `end` is called. */
  read(data: string): Iterable<ModelEvent>;
  /** `cut` is null if the stream ended by itself. */
  end(cut: BrokenStream | null): Iterable<ModelEvent>;
}

export function createEndpointClient(options: ModelClientOptions, wire: Wire): ModelClient {
  const { provider, model } = options;
  const { responseTimeoutMs = DEFAULT_RESPONSE_TIMEOUT_MS, streamIdleTimeoutMs: idleTimeoutMs } = provider;
  const connection = new Connection(options, wire);
  return {
    provider: provider.id,
    model,
    reasoningEffort: options.settings?.reasoningEffort,
    maxStreamRetries: provider.maxStreamRetries,
    takesOnlyFunctions: wire.takesOnlyFunctions,
    async *stream(request, signal) {
      signal.throwIfAborted();
      using limit = new TimeLimit(responseTimeoutMs, signal);
      try {
        const answer = await connection.send(wire.body(request), limit.signal);
        if ("kind" in answer) yield answer;
        else {
          const reader = await wire.openReader(request, (refusal) => readRefused(refusal, connection));
          yield* readAnswer(answer, { reader, idleTimeoutMs, signal: limit.signal });
        }
      } catch (error) {
        signal.throwIfAborted();
        throw limit.isOver ? responseTimedOut(responseTimeoutMs) : error;
      }
    },
  };
}

/** Thrown, and not a `broken` event: a retry would take as long. */
function responseTimedOut(responseTimeoutMs: number): BrigError {
  const message = `the model's response was not complete within ${formatDuration(responseTimeoutMs)}`;
  const hint = "if the model needs longer, set a larger response_timeout_ms for its provider";
  return transportFailure(message, { hint }).error;
}

function readRefused(refusal: Refusal, connection: Connection): ModelEvent {
  const message = connection.redacted(refusal.message);
  const { canRetry, error, retryAfterMs } = classifyRefusal({ ...refusal, message });
  if (!canRetry) throw error;
  return { kind: "broken", error, retryAfterMs };
}

interface Reading {
  reader: ResponseReader;
  idleTimeoutMs: number;
  signal: AbortSignal;
}

async function* readAnswer(
  response: Response,
  { reader, idleTimeoutMs, signal }: Reading,
): AsyncIterable<ModelEvent> {
  if (response.body === null) throw unusableResponse("the endpoint answered without a body");
  let hasEvents = false;
  let cut: BrokenStream | null = null;
  try {
    for await (const data of readServerEvents(response.body, { idleTimeoutMs })) {
      for (const event of reader.read(data)) {
        yield event;
        if (isLast(event)) return;
      }
      hasEvents = true;
    }
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof BrokenStream)) throw cause;
    cut = cause;
  }
  signal.throwIfAborted();
  if (!hasEvents && (cut === null || cut instanceof DamagedStream)) refuseOtherContent(response);
  yield* reader.end(cut);
}

function refuseOtherContent({ headers }: Response): void {
  const type = headers.get("content-type")?.split(";", 1)[0] ?? "text/event-stream";
  if (type === "text/event-stream") return;
  throw unusableResponse(
    `the endpoint answered with ${type} instead of a stream of events`,
    "check the provider's base_url: it ends before /responses or /chat/completions, usually with /v1",
  );
}

function isLast({ kind }: ModelEvent): boolean {
  return kind === "completed" || kind === "broken";
}

export function broken(message: string, cause?: unknown): ModelEvent {
  const { error } = transportFailure(message, { cause });
  return { kind: "broken", error, retryAfterMs: null, isSilent: cause instanceof SilentStream };
}
