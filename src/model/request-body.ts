import { wireItem } from "./items.js";
import type { ModelRequest } from "./model-client.js";
import { profileOf } from "./model-profile.js";

/** What a configuration says about a model's answers. Unset means the endpoint's own default. */
export interface ModelSettings {
  reasoningEffort?: string | undefined;
  reasoningSummary?: string | undefined;
  verbosity?: string | undefined;
  serviceTier?: string | undefined;
}

/** The body of `POST /responses`. */
export function requestBody(
  request: ModelRequest,
  { model, threadId, settings }: { model: string; threadId: string; settings: ModelSettings },
): Readonly<Record<string, unknown>> {
  const reasoning = reasoningOf(model, settings);
  return {
    model,
    ...(request.instructions === "" ? {} : { instructions: request.instructions }),
    input: request.input.map(wireItem),
    tools: request.tools,
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning,
    store: false,
    stream: true,
    include: reasoning === null ? [] : ["reasoning.encrypted_content"],
    prompt_cache_key: threadId,
    ...serviceTier(settings),
    ...textFormat(request, settings),
  };
}

function reasoningOf(model: string, { reasoningEffort: effort, reasoningSummary: summary }: ModelSettings) {
  if (effort === undefined && summary === undefined && !profileOf(model).reasons) return null;
  return {
    ...(effort === undefined ? {} : { effort }),
    ...(summary === "none" ? {} : { summary: summary ?? "auto" }),
  };
}

function serviceTier({ serviceTier: tier }: ModelSettings) {
  return tier === undefined ? {} : { service_tier: tier === "fast" ? "priority" : tier };
}

function textFormat({ outputSchema }: ModelRequest, { verbosity }: ModelSettings) {
  if (outputSchema === undefined && verbosity === undefined) return {};
  const format = { type: "json_schema", strict: true, schema: outputSchema, name: "codex_output_schema" };
  return {
    text: {
      ...(verbosity === undefined ? {} : { verbosity }),
      ...(outputSchema === undefined ? {} : { format }),
    },
  };
}
