import { randomUUID } from "node:crypto";
import type { Environment } from "../../lib/env.js";
import { readVersion } from "../../version.js";
import type { Config } from "../config/config-schema.js";

/** Where spans or measurements are posted to. */
export interface OtlpTarget {
  url: string;
  encoding: "binary" | "json";
  headers: Readonly<Record<string, string>>;
}

export interface TelemetrySettings {
  /** Null for what is not sent. */
  traces: OtlpTarget | null;
  metrics: OtlpTarget | null;
  resource: Readonly<Record<string, string>>;
  /** Whether spans may contain what was said. */
  capturesContent: boolean;
  /** What the program that started this one calls its span, as `TRACEPARENT` and `TRACESTATE` say. */
  parent: { traceparent?: string | undefined; tracestate?: string | undefined };
}

type Variables = Environment["variables"];

/**
 * What is to be sent, and where. The environment comes before config.toml, and what one of them names as a target is never
 * mixed with headers of the other. Null if nothing is sent.
 */
export function telemetrySettings(
  { otel }: Pick<Config, "otel">,
  { variables }: Pick<Environment, "variables">,
): { settings: TelemetrySettings | null; warnings: string[] } {
  const warnings: string[] = [];
  if (isTrue(variables.OTEL_SDK_DISABLED)) return { settings: null, warnings };
  const targetOf = (signal: Signal, configured: OtlpTarget | string | null): OtlpTarget | null => {
    const found = environmentTarget(signal, variables) ?? configured;
    if (typeof found !== "string") return found;
    if (found !== "none") warnings.push(found);
    return null;
  };
  const traces = targetOf("traces", configuredTarget(otel, "trace_exporter"));
  const metrics = targetOf("metrics", configuredTarget(otel, "metrics_exporter"));
  if (traces === null && metrics === null) return { settings: null, warnings };
  const { TRACEPARENT: traceparent, TRACESTATE: tracestate } = variables;
  const resource = resourceOf(otel, variables);
  const isAsked = isTrue(variables.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT);
  const capturesContent = otel.capture_message_content || isAsked;
  return {
    settings: { traces, metrics, resource, capturesContent, parent: { traceparent, tracestate } },
    warnings,
  };
}

type Signal = "traces" | "metrics";

/** A text says why nothing is sent, and is `none` where that is what was asked for. Null if the environment says nothing. */
function environmentTarget(signal: Signal, variables: Variables): OtlpTarget | string | null {
  const named = (suffix: string): [string, string] | null => {
    const names = [`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${suffix}`, `OTEL_EXPORTER_OTLP_${suffix}`];
    const name = names.find((each) => variables[each] !== undefined);
    return name === undefined ? null : [name, variables[name] ?? ""];
  };
  const exporterName = `OTEL_${signal.toUpperCase()}_EXPORTER`;
  const exporters = variables[exporterName]?.split(",").map((each) => each.trim().toLowerCase());
  const endpoint = named("ENDPOINT");
  if (exporters !== undefined && !exporters.includes("otlp"))
    return exporters.every((each) => each === "none")
      ? "none"
      : `nothing is sent for ${exporterName}=${exporters.join(",")}: brig knows otlp and none`;
  if (endpoint === null && exporters === undefined) return null;
  const [protocolName, protocol] = named("PROTOCOL") ?? ["", "http/protobuf"];
  const encoding = encodings[protocol];
  if (encoding === undefined)
    return `nothing is sent for ${protocolName}=${protocol}: brig knows http/protobuf and http/json`;
  const [name, base] = endpoint ?? ["", "http://localhost:4318"];
  const isWhole = name.includes("TRACES") || name.includes("METRICS");
  const url = isWhole ? base : `${base.replace(/\/+$/, "")}/v1/${signal}`;
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    return `nothing is sent, because ${name} is not an http or https URL`;
  const headers = pairs(named("HEADERS")?.[1]).filter(([key]) => TOKEN.test(key));
  return { url, encoding, headers: Object.fromEntries(headers) };
}

const encodings: Readonly<Record<string, OtlpTarget["encoding"]>> = {
  "http/protobuf": "binary",
  "http/json": "json",
};

/** What the name of a header consists of. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

function configuredTarget(
  otel: Config["otel"],
  key: "trace_exporter" | "metrics_exporter",
): OtlpTarget | string | null {
  const exporter = otel[key];
  if (typeof exporter !== "object") return null;
  const { "otlp-http": http, "otlp-grpc": grpc } = exporter;
  if (http !== undefined) return { url: http.endpoint, encoding: http.protocol, headers: http.headers };
  return grpc === undefined ? null : `nothing is sent for otel.${key}.otlp-grpc: brig knows otlp-http`;
}

function resourceOf({ environment }: Config["otel"], variables: Variables): Record<string, string> {
  return {
    "service.name": "brig",
    "service.version": readVersion(),
    // Two programs that run at the same time would otherwise look like one whose counters jump.
    "service.instance.id": randomUUID(),
    ...(environment !== undefined && { "deployment.environment.name": environment }),
    ...Object.fromEntries(pairs(variables.OTEL_RESOURCE_ATTRIBUTES)),
    ...(variables.OTEL_SERVICE_NAME !== undefined && { "service.name": variables.OTEL_SERVICE_NAME }),
  };
}

/** Reads `key=value,key=value`, with values encoded as in a URL. What cannot be read is left out. */
function pairs(list = ""): [string, string][] {
  return list.split(",").flatMap((entry): [string, string][] => {
    const at = entry.indexOf("=");
    const key = entry.slice(0, at).trim();
    const value = decoded(entry.slice(at + 1).trim());
    // A line break would end a header.
    return at < 1 || key === "" || value === null || /\p{Cc}/u.test(value) ? [] : [[key, value]];
  });
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function isTrue(value: string | undefined): boolean {
  return value?.trim().toLowerCase() === "true";
}
