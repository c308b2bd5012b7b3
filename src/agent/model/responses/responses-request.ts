import { isAzure } from "../endpoint/endpoint-quirks.js";
import { requestItem } from "../items.js";
import type { ModelRequest } from "../model-client.js";
import { profileOf } from "../model-profile.js";
import { type ModelSettings, serviceTierField } from "../model-settings.js";
import type { ModelProvider } from "../provider.js";

/**
 * The body of `POST /responses`. Only Azure is asked to store items: it refuses reasoning without an id, and
 * unknown ids.
 */
export function responsesBody(
  request: ModelRequest,
  {
    provider,
    model,
    threadId,
    settings,
  }: {
    provider: Pick<ModelProvider, "id" | "baseUrl">;
    model: string;
    threadId: string;
    settings: ModelSettings;
  },
): Readonly<Record<string, unknown>> {
  const reasoning = reasoningOf(model, settings);
  const keepsItems = isAzure(provider);
  return {
    model,
    ...(request.instructions === "" ? {} : { instructions: request.instructions }),
    input: request.input.map((item) => requestItem(item, { withId: keepsItems })),
    tools: request.tools,
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning,
    store: keepsItems,
    stream: true,
    include: reasoning === null ? [] : ["reasoning.encrypted_content"],
    prompt_cache_key: threadId,
    ...serviceTierField(settings),
    ...textFormat(request, settings),
  };
}

function reasoningOf(model: string, settings: ModelSettings) {
  const { reasoningEffort: effort, reasoningSummary: summary, reasons } = settings;
  const isAsked = effort !== undefined || summary !== undefined;
  if (!(reasons ?? (isAsked || profileOf(model).reasons))) return null;
  return {
    ...(effort === undefined ? {} : { effort }),
    ...(summary === "none" ? {} : { summary: summary ?? "auto" }),
  };
}

function textFormat({ outputSchema }: ModelRequest, { verbosity }: ModelSettings) {
  if (outputSchema === undefined && verbosity === undefined) return {};
  const format = { type: "json_schema", strict: true, schema: outputSchema, name: OUTPUT_SCHEMA_NAME };
  return {
    text: {
      ...(verbosity === undefined ? {} : { verbosity }),
      ...(outputSchema === undefined ? {} : { format }),
    },
  };
}

/** The name that requests give to the schema of the final text. */
export const OUTPUT_SCHEMA_NAME = "codex_output_schema";
