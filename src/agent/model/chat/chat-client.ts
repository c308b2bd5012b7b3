import { createEndpointClient, type ModelClientOptions } from "../endpoint/endpoint-client.js";
import { supportsDeveloperRole } from "../endpoint/endpoint-quirks.js";
import type { ModelClient } from "../model-client.js";
import { ChatReader } from "./chat-reader.js";
import { chatBody } from "./chat-request.js";

/** A client for a model behind Chat Completions. */
export function createChatClient(options: ModelClientOptions): ModelClient {
  const { provider, model, settings = {} } = options;
  // Endpoints have different names for a model's reasoning, and expect it back under the name that they used.
  let reasoningField = "reasoning";
  return createEndpointClient(options, {
    sender: ({ chat }) => chat.completions,
    optionalFields: ["stream_options", "parallel_tool_calls"],
    takesOnlyFunctions: true,
    body: (request) =>
      chatBody(request, {
        model,
        settings,
        reasoningField,
        keepsDeveloperRole: supportsDeveloperRole(provider),
      }),
    openReader: (request, refused) =>
      new ChatReader(request, {
        refused,
        onReasoningField(name) {
          reasoningField = name;
        },
      }),
  });
}
