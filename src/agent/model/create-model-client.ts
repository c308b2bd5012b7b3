import { type OptionNames, refuseUnknownOptions } from "../../known-options.js";
import { createChatClient } from "./chat/chat-client.js";
import type { ModelClientOptions } from "./endpoint/endpoint-client.js";
import type { OpenAIClient } from "./endpoint/openai-client.js";
import type { ModelClient } from "./model-client.js";
import type { ModelProvider } from "./provider.js";
import { providerSchema } from "./provider-schema.js";
import { createResponsesClient } from "./responses/responses-client.js";
import { noCredentials } from "./static-credentials.js";

/** How to use an endpoint whose address and credentials the caller's client knows. */
export type ClientProvider = Partial<
  Pick<
    ModelProvider,
    "id" | "wireApi" | "maxRequestRetries" | "maxStreamRetries" | "streamIdleTimeoutMs" | "responseTimeoutMs"
  >
>;

/** A client of the `openai` package, and a model behind it. */
export interface OwnClientOptions extends Omit<ModelClientOptions, "provider" | "client" | "userAgent"> {
  client: OpenAIClient;
  /** Default: the provider `openai`, with the values that a provider in the configuration has. */
  provider?: ClientProvider | undefined;
}

const optionNames: OptionNames<ModelClientOptions> = {
  client: true,
  model: true,
  originator: true,
  settings: true,
  provider: true,
  threadId: true,
  userAgent: true,
  random: true,
  sleep: true,
};

/** A client for a model at an endpoint, which speaks the provider's wire API. */
export function createModelClient(options: ModelClientOptions | OwnClientOptions): ModelClient {
  refuseUnknownOptions(options, optionNames, { of: "createModelClient" });
  const { client } = options;
  const whole = client === undefined ? (options as ModelClientOptions) : withProvider({ ...options, client });
  return whole.provider.wireApi === "chat" ? createChatClient(whole) : createResponsesClient(whole);
}

function withProvider({ provider, ...options }: OwnClientOptions): ModelClientOptions {
  const usual = providerSchema.parse({});
  return {
    ...options,
    provider: {
      id: "openai",
      wireApi: usual.wire_api,
      maxRequestRetries: usual.request_max_retries,
      maxStreamRetries: usual.stream_max_retries,
      streamIdleTimeoutMs: usual.stream_idle_timeout_ms,
      responseTimeoutMs: usual.response_timeout_ms,
      ...provider,
      baseUrl: options.client.baseURL,
      credentials: noCredentials,
      headers: {},
      query: {},
    },
  };
}
