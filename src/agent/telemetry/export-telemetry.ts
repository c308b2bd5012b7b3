import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, metrics, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { Proxies } from "../../lib/proxy/proxies.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { CAPTURES_CONTENT } from "./conversation-telemetry.js";
import { OtlpExporter } from "./otlp-exporter.js";
import type { TelemetrySettings } from "./telemetry-settings.js";

/** How long the end of the program may be delayed. */
const CLOSING_MS = 2000;
/** Spans that wait to be sent. More are dropped. */
const MAX_WAITING_SPANS = 4096;
const SPANS_EVERY_MS = 1000;
const METRICS_EVERY_MS = 60_000;

/** Providers that are registered for the whole process, until they are closed. */
export interface TelemetryExport {
  /** Sends what is left, for at most two seconds. Resolves to why something was not sent, in a sentence, or to null. */
  close(): Promise<string | null>;
}

/** Registers providers that send what they are given over OTLP. Null if others are registered already. */
export function exportTelemetry(
  { traces, metrics: measured, resource: facts, capturesContent, parent }: TelemetrySettings,
  { proxies }: { proxies: Proxies },
): TelemetryExport | null {
  if (!context.setGlobalContextManager(new AsyncContexts(parent, { capturesContent }))) return null;
  const resource = resourceFromAttributes({ ...facts });
  const [closing, closed] = [new AbortController(), new AbortController()];
  const providers: { shutdown(): Promise<void> }[] = [];
  let trouble: string | null = null;
  const options = {
    proxies,
    closing: closing.signal,
    signal: closed.signal,
    onTrouble: (why: string) => {
      trouble ??= why;
    },
  };
  if (traces !== null) {
    const serializer = traces.encoding === "json" ? JsonTraceSerializer : ProtobufTraceSerializer;
    const processor = new BatchSpanProcessor(new OtlpExporter(traces, serializer, options), {
      maxQueueSize: MAX_WAITING_SPANS,
      scheduledDelayMillis: SPANS_EVERY_MS,
    });
    const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
    trace.setGlobalTracerProvider(provider);
    providers.push(provider);
  }
  if (measured !== null) {
    const serializer = measured.encoding === "json" ? JsonMetricsSerializer : ProtobufMetricsSerializer;
    const reader = new PeriodicExportingMetricReader({
      exporter: new OtlpExporter(measured, serializer, options),
      exportIntervalMillis: METRICS_EVERY_MS,
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    providers.push(provider);
  }
  return {
    async close() {
      closing.abort();
      using limit = new TimeLimit(CLOSING_MS);
      const late = new Promise<void>((resolve) => {
        limit.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await Promise.race([Promise.allSettled(providers.map((each) => each.shutdown())), late]);
      if (limit.isOver) trouble ??= `not everything was sent within ${CLOSING_MS / 1000} seconds`;
      closed.abort();
      for (const api of [trace, metrics, context]) api.disable();
      return trouble;
    },
  };
}

/** Keeps the active span through awaits. Where there is none, it is that of whoever started the program. */
class AsyncContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  readonly #outside: Context;

  constructor(
    parent: TelemetrySettings["parent"],
    { capturesContent }: Pick<TelemetrySettings, "capturesContent">,
  ) {
    const getter = {
      get: (carrier: TelemetrySettings["parent"], key: string) =>
        key === "traceparent" || key === "tracestate" ? carrier[key] : undefined,
      keys: () => ["traceparent", "tracestate"],
    };
    const root = ROOT_CONTEXT.setValue(CAPTURES_CONTENT, capturesContent);
    this.#outside = new W3CTraceContextPropagator().extract(root, parent, getter);
  }

  active(): Context {
    return this.#storage.getStore() ?? this.#outside;
  }

  with<Args extends unknown[], Work extends (...args: Args) => ReturnType<Work>>(
    active: Context,
    work: Work,
    self?: ThisParameterType<Work>,
    ...args: Args
  ): ReturnType<Work> {
    return this.#storage.run(active, () => work.call(self, ...args));
  }

  bind<Target>(active: Context, target: Target): Target {
    if (typeof target !== "function") return target;
    const bound = (...args: unknown[]) => this.#storage.run(active, () => target(...args));
    return bound as Target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}
