import { z } from "zod";
import { httpUrl, unused } from "../../lib/setting-kinds.js";

const otlpHttpSchema = z.object({
  endpoint: httpUrl.describe("The URL to post to, with its path, such as `/v1/traces`"),
  protocol: z.enum(["binary", "json"]).default("binary").describe("How the bodies are encoded"),
  headers: z
    .record(z.string(), z.string().meta({ isSecret: true }))
    .default({})
    .describe("Headers of every request"),
  tls: unused,
});

const exporter = z
  .union([
    z.enum(["none", "statsig"]),
    z.object({ "otlp-http": otlpHttpSchema.optional(), "otlp-grpc": unused }),
  ])
  .optional();

/** What is sent to a collector of OpenTelemetry. Variables of the environment that name one come before it. */
export const otelSchema = z.object({
  environment: z
    .string()
    .min(1)
    .optional()
    .describe("What the resource says as `deployment.environment.name`"),
  // A table of it may have keys among its headers.
  trace_exporter: exporter
    .describe("Where spans go: the table `otlp-http`; `statsig` of Codex is the same as `none`")
    .meta({ isSecret: true }),
  metrics_exporter: exporter.describe("Where measurements go, likewise").meta({ isSecret: true }),
  capture_message_content: z
    .boolean()
    .default(false)
    .describe("Whether spans contain prompts, answers, arguments and outputs, with secrets masked"),
  exporter: unused,
  log_user_prompt: unused,
  span_attributes: unused,
  tracestate: unused,
});
