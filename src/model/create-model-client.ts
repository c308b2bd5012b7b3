import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import { createChatClient } from "./chat/chat-client.js";
import type { ModelClientOptions } from "./endpoint/endpoint-client.js";
import type { ModelClient } from "./model-client.js";
import { createResponsesClient } from "./responses/responses-client.js";

const optionNames: OptionNames<ModelClientOptions> = {
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
export function createModelClient(options: ModelClientOptions): ModelClient {
  refuseUnknownOptions(options, optionNames, { of: "createModelClient" });
  return options.provider.wireApi === "chat" ? createChatClient(options) : createResponsesClient(options);
}
