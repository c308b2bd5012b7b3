import { createChatClient } from "./chat-client.js";
import type { ModelClientOptions } from "./endpoint-client.js";
import type { ModelClient } from "./model-client.js";
import { createResponsesClient } from "./responses-client.js";

/** A model behind an endpoint, spoken to as its provider wants it. */
export function createModelClient(options: ModelClientOptions): ModelClient {
  return options.provider.wireApi === "chat" ? createChatClient(options) : createResponsesClient(options);
}
