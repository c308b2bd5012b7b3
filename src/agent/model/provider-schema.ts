import { z } from "zod";
import { httpUrl, milliseconds, unused } from "../../lib/setting-kinds.js";

const retries = z.int().min(0).max(100);
const texts = z.record(z.string(), z.string());
const secretTexts = z.record(z.string(), z.string().meta({ isSecret: true }));

export const providerSchema = z.object({
  name: z.string().optional().describe("A name to show to people"),
  base_url: httpUrl.optional().describe("The base URL, without /responses"),
  env_key: z.string().optional().describe("The environment variable that holds the API key"),
  env_key_instructions: z.string().optional().describe("Where to get a key"),
  experimental_bearer_token: z
    .string()
    .optional()
    .describe("The API key itself; `env_key` is safer")
    .meta({ isSecret: true }),
  wire_api: z.enum(["responses", "chat"]).default("responses").describe("Which API the endpoint speaks"),
  query_params: secretTexts.default({}).describe("Query parameters of every request"),
  http_headers: secretTexts.default({}).describe("Headers of every request"),
  env_http_headers: texts
    .default({})
    .describe("Headers by name, each with the environment variable that holds its value"),
  request_max_retries: retries.default(4).describe("How often a request that failed is sent again"),
  stream_max_retries: retries.default(5).describe("How often a stream that broke is opened again"),
  stream_idle_timeout_ms: milliseconds
    .default(300_000)
    .describe("Milliseconds without an event after which a stream counts as broken; comments do not count"),
  response_timeout_ms: milliseconds
    .default(3_600_000)
    .describe("Milliseconds that one response may take, including retried requests"),
  requires_openai_auth: z.boolean().default(false).describe("Whether it uses the login of `brig login`"),
  auth: unused,
  aws: unused,
  gateway_oauth: unused,
  model_catalog_url: unused,
  supports_standalone_web_search: unused,
  supports_websockets: unused,
  websocket_connect_timeout_ms: unused,
});

export type ProviderConfig = Readonly<z.infer<typeof providerSchema>>;
