import { createEndpointClient, type ModelClientOptions } from "../endpoint/endpoint-client.js";
import { knowsDeveloperRole } from "../endpoint/endpoint-quirks.js";
import type { ModelClient } from "../model-client.js";
import { ChatReader } from "./chat-reader.js";
import { chatBody } from "./chat-request.js";

/** A model behind Chat Completions. */
export function createChatClient(options: ModelClientOptions): ModelClient {
  const { provider, model, settings = {} } = options;
  // Endpoints name the thoughts of a model differently, and want them back as they named them.
  let reasoningField = "reasoning";
  return createEndpointClient(options, {
    path: "/chat/completions",
    optionalFields: ["stream_options", "parallel_tool_calls"],
    takesOnlyFunctions: true,
    body: (request) =>
      chatBody(request, {
        model,
        settings,
        reasoningField,
        keepsDeveloperRole: knowsDeveloperRole(provider),
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
