import type { BrigError } from "../../errors.js";
import { formatDuration } from "../../lib/time/durations.js";
import { LONGEST_TIMER_MS } from "../../lib/time/pause.js";
import type { ModelClient, ModelEvent, ModelRequest } from "../model-client.js";
import type { ModelSettings } from "../model-settings.js";
import { Connection, type ConnectionOptions, type Route } from "./connection.js";
import { classifyRefusal, type Refusal, senselessAnswer, transportFailure } from "./model-failure.js";
import { BrokenStream, readServerEvents, SilentStream } from "./server-events.js";

/** Models that think for long answer within half of it. */
const DEFAULT_RESPONSE_TIMEOUT_MS = 3_600_000;

/** Which model is asked, where, and how. */
export interface ModelClientOptions extends ConnectionOptions {
  model: string;
  settings?: ModelSettings | undefined;
}

/** How requests and responses look at an endpoint. */
export interface Wire extends Route {
  takesOnlyFunctions: boolean;
  body(request: ModelRequest): Readonly<Record<string, unknown>>;
  openReader(request: ModelRequest, refused: RefusalReader): ResponseReader;
}

/** What a failure within a stream means: broken where it is worth asking again, else it is thrown. */
export type RefusalReader = (refusal: Refusal) => ModelEvent;

/** Reads one response. What it says is over with `completed` or `broken`; a failure that no retry mends is thrown. */
export interface ResponseReader {
  /** What the data of a server-sent event means. */
  read(data: string): Iterable<ModelEvent>;
  /** What it means that the stream is over, by itself or cut. */
  end(cut: BrokenStream | null): Iterable<ModelEvent>;
}

/** A model behind an endpoint. */
export function createEndpointClient(options: ModelClientOptions, wire: Wire): ModelClient {
  const { provider, model } = options;
  const connection = new Connection(options, wire);
  return {
    provider: provider.id,
    model,
    maxStreamRetries: provider.maxStreamRetries,
    takesOnlyFunctions: wire.takesOnlyFunctions,
    async *stream(request, signal) {
      signal.throwIfAborted();
      // The SDK never takes its listener off a signal again: it is given one that lasts as long as the request.
      const own = new AbortController();
      const follow = () => own.abort(signal.reason);
      signal.addEventListener("abort", follow, { once: true });
      const { responseTimeoutMs = DEFAULT_RESPONSE_TIMEOUT_MS } = provider;
      const limit = setTimeout(
        () => own.abort(tookTooLong(responseTimeoutMs)),
        Math.min(responseTimeoutMs, LONGEST_TIMER_MS),
      );
      try {
        const answer = await connection.send(wire.body(request), own.signal);
        if ("kind" in answer) yield answer;
        else {
          const reader = wire.openReader(request, (refusal) => readRefused(refusal, connection));
          const idleTimeoutMs = provider.streamIdleTimeoutMs;
          yield* readAnswer(answer, { reader, idleTimeoutMs, signal: own.signal });
        }
      } finally {
        clearTimeout(limit);
        signal.removeEventListener("abort", follow);
      }
    },
  };
}

/** Asking again would take as long. */
function tookTooLong(responseTimeoutMs: number): BrigError {
  const message = `the model's response was not complete within ${formatDuration(responseTimeoutMs)}`;
  const hint = "a model that needs longer wants a larger response_timeout_ms for its provider";
  return transportFailure(message, { hint }).error;
}

function readRefused(refusal: Refusal, connection: Connection): ModelEvent {
  const message = connection.tellable(refusal.message);
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
  if (response.body === null) throw senselessAnswer("the endpoint answered without a body");
  let hasEvents = false;
  let cut: BrokenStream | null = null;
  try {
    for await (const data of readServerEvents(response.body, { idleTimeoutMs })) {
      hasEvents = true;
      for (const event of reader.read(data)) {
        yield event;
        if (isLast(event)) return;
      }
    }
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof BrokenStream)) throw cause;
    cut = cause;
  }
  signal.throwIfAborted();
  if (!hasEvents && cut === null) refuseOtherContent(response);
  yield* reader.end(cut);
}

/** A web page, say, of a proxy that wants a login. */
function refuseOtherContent({ headers }: Response): void {
  const type = headers.get("content-type")?.split(";", 1)[0] ?? "text/event-stream";
  if (type === "text/event-stream") return;
  throw senselessAnswer(
    `the endpoint answered with ${type} and not with a stream of events`,
    "check the provider's base_url: it ends before /responses or /chat/completions, mostly with /v1",
  );
}

function isLast({ kind }: ModelEvent): boolean {
  return kind === "completed" || kind === "broken";
}

export function broken(message: string, cause?: unknown): ModelEvent {
  const { error } = transportFailure(message, { cause });
  return { kind: "broken", error, retryAfterMs: null, isSilent: cause instanceof SilentStream };
}
