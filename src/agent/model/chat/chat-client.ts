import { createEndpointClient, type ModelClientOptions } from "../endpoint/endpoint-client.js";
import { supportsDeveloperRole } from "../endpoint/endpoint-quirks.js";
import type { ModelClient, ModelRequest } from "../model-client.js";
import { type ModelSettings, serviceTierField } from "../model-settings.js";
import { OUTPUT_SCHEMA_NAME } from "../responses/responses-request.js";
import { chatMessages } from "./chat-messages.js";

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
    async openReader(request, refused) {
      const { ChatReader } = await import("./chat-reader.js");
      return new ChatReader(request, {
        refused,
        onReasoningField(name) {
          reasoningField = name;
        },
      });
    },
  });
}

interface ChatBodyOptions {
  model: string;
  settings: ModelSettings;
  reasoningField: string;
  keepsDeveloperRole: boolean;
}

/** The body of `POST /chat/completions`. */
function chatBody(request: ModelRequest, options: ChatBodyOptions): Readonly<Record<string, unknown>> {
  const { model, settings } = options;
  const { reasoningEffort, verbosity } = settings;
  return {
    model,
    messages: chatMessages(request, options),
    ...toolFields(request),
    stream: true,
    stream_options: { include_usage: true },
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(verbosity === undefined ? {} : { verbosity }),
    ...serviceTierField(settings),
    ...responseFormat(request),
  };
}

/** Endpoints refuse an empty list of tools, and settings for tools without any tool. */
function toolFields({ tools }: ModelRequest): Readonly<Record<string, unknown>> {
  const functions = tools.flatMap(({ type, ...declared }) =>
    type === "function" ? [{ type, function: declared }] : [],
  );
  return functions.length === 0 ? {} : { tools: functions, parallel_tool_calls: true };
}

function responseFormat({ outputSchema: schema }: ModelRequest): Readonly<Record<string, unknown>> {
  if (schema === undefined) return {};
  const json_schema = { name: OUTPUT_SCHEMA_NAME, strict: true, schema };
  return { response_format: { type: "json_schema", json_schema } };
}
