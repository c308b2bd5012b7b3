import type { ModelRequest } from "../model-client.js";
import { type ModelSettings, serviceTierField } from "../model-settings.js";
import { OUTPUT_SCHEMA_NAME } from "../responses/responses-request.js";
import { chatMessages } from "./chat-messages.js";

export interface ChatBodyOptions {
  model: string;
  settings: ModelSettings;
  /** Under which name a message gives the thoughts that led to it. */
  reasoningField: string;
  /** Whether the endpoint knows the role `developer`. */
  keepsDeveloperRole: boolean;
}

/** The body of `POST /chat/completions`. */
export function chatBody(request: ModelRequest, options: ChatBodyOptions): Readonly<Record<string, unknown>> {
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

/** An endpoint refuses an empty list of tools, and settings about tools without any. */
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
