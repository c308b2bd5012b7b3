import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that the receiver has read. */
interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A span, as OTLP's JSON has it. */
export interface ReceivedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  status: { code?: number };
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Record<string, unknown>;
}

interface Measurement {
  attributes: Record<string, unknown>;
  /** Of a counter its value, of a histogram its sum. */
  value: number;
}

/** A collector on loopback. */
export interface OtlpReceiver extends AsyncDisposable {
  url: string;
  requests: Received[];
  spans(): ReceivedSpan[];
  resource(): Record<string, unknown>;
  measurements(name: string): Measurement[];
}

/** It answers each request after so long, or sends it on to another address. */
export async function startOtlpReceiver({ answersAfterMs = 0, sendsTo = "" } = {}): Promise<OtlpReceiver> {
  const requests: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      requests.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) });
      const [status, headers] = sendsTo === "" ? [200, {}] : [307, { location: `${sendsTo}/v1/traces` }];
      setTimeout(() => response.writeHead(status, headers).end("{}"), answersAfterMs).unref();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const all = (path: string) =>
    requests.filter((request) => request.path === path).map(({ body }) => JSON.parse(body.toString()));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    spans: () =>
      all("/v1/traces")
        .flatMap(({ resourceSpans }) => resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans)
        .map((span) => ({ ...span, attributes: valuesOf(span.attributes) })),
    resource: () => valuesOf(all("/v1/traces")[0]?.resourceSpans[0].resource.attributes ?? []),
    measurements: (name) =>
      (all("/v1/metrics").at(-1)?.resourceMetrics ?? [])
        .flatMap(({ scopeMetrics }: { scopeMetrics: object[] }) => scopeMetrics)
        .flatMap(({ metrics }: { metrics: object[] }) => metrics)
        .filter((metric: { name: string }) => metric.name === name)
        .flatMap(({ sum, histogram }: Points) => (sum ?? histogram)?.dataPoints ?? [])
        .map((point: DataPoint) => ({
          attributes: valuesOf(point.attributes),
          value: Number(point.sum ?? point.asInt ?? point.asDouble),
        })),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface DataPoint {
  attributes: Attribute[];
  sum?: number;
  asInt?: number | string;
  asDouble?: number;
}

interface Points {
  sum?: { dataPoints: DataPoint[] };
  histogram?: { dataPoints: DataPoint[] };
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain(value: Record<string, unknown>): unknown {
  const { arrayValue, intValue } = value as {
    arrayValue?: { values: Record<string, unknown>[] };
    intValue?: unknown;
  };
  if (arrayValue !== undefined) return arrayValue.values.map(plain);
  return intValue === undefined ? Object.values(value)[0] : Number(intValue);
}
