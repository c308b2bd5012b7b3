import { describe, expect, it } from "vitest";
import { configSchema } from "../../../../src/agent/config/config-schema.js";
import { telemetrySettings } from "../../../../src/agent/telemetry/telemetry-settings.js";

function read(variables: Record<string, string>, otel: object = {}) {
  return telemetrySettings(configSchema.parse({ otel }), { variables });
}

const configured = {
  trace_exporter: {
    "otlp-http": { endpoint: "https://file.test/t", protocol: "json", headers: { key: "k" } },
  },
};

describe("where telemetry is sent", () => {
  it("is nowhere unless something says it", () => {
    expect(read({})).toEqual({ settings: null, warnings: [] });
    expect(read({ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_HEADERS: "a=b" }).settings).toBeNull();
    expect(read({}, { trace_exporter: "none", metrics_exporter: "statsig" }).settings).toBeNull();
  });

  it("is what OpenTelemetry's variables name", () => {
    const { settings } = read({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://one.test:4318/",
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://two.test/m",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1,bad name=2,b=x%3Dy, =3,c",
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: "m=%0d%0aevil: 1,n=2",
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json",
      OTEL_RESOURCE_ATTRIBUTES: "team=a%20b,service.name=lost",
      OTEL_SERVICE_NAME: "mine",
    });
    expect(settings).toMatchObject({
      traces: { url: "http://one.test:4318/v1/traces", encoding: "binary", headers: { a: "1", b: "x=y" } },
      metrics: { url: "http://two.test/m", encoding: "json", headers: { n: "2" } },
      resource: { "service.name": "mine", team: "a b" },
    });
    expect(read({ OTEL_TRACES_EXPORTER: "otlp" }).settings).toMatchObject({
      traces: { url: "http://localhost:4318/v1/traces" },
      metrics: null,
    });
  });

  it("is what the file names, whose headers go nowhere else", () => {
    expect(read({}, { ...configured, environment: "test" }).settings).toMatchObject({
      traces: { url: "https://file.test/t", encoding: "json", headers: { key: "k" } },
      metrics: null,
      resource: { "deployment.environment.name": "test" },
    });
    const { settings } = read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://one.test" }, configured);
    expect(settings?.traces).toEqual({ url: "http://one.test/v1/traces", encoding: "binary", headers: {} });
    expect(read({ OTEL_TRACES_EXPORTER: "none" }, configured).settings).toBeNull();
    expect(read({ OTEL_SDK_DISABLED: "TRUE" }, configured).settings).toBeNull();
  });

  it.each([
    [{ OTEL_TRACES_EXPORTER: "zipkin" }, {}, "OTEL_TRACES_EXPORTER=zipkin"],
    [
      { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      {},
      "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
    ],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "file:///etc" }, {}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"],
    [{}, { trace_exporter: { "otlp-grpc": { endpoint: "http://x" } } }, "otel.trace_exporter.otlp-grpc"],
  ])("says why nothing is sent with %j %j", (variables, otel, named) => {
    const { settings, warnings } = read(variables, otel);
    expect(settings).toBeNull();
    expect(warnings).toEqual([expect.stringContaining(named)]);
  });
});
