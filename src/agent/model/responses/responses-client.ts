import { createEndpointClient, type ModelClientOptions } from "../endpoint/endpoint-client.js";
import { isAzure } from "../endpoint/endpoint-quirks.js";
import type { ModelClient } from "../model-client.js";
import { responsesBody } from "./responses-request.js";

/** A client for a model behind the Responses API. */
export function createResponsesClient(options: ModelClientOptions): ModelClient {
  const { provider, settings = {} } = options;
  return createEndpointClient(options, {
    sender: ({ responses }) => responses,
    optionalFields: [
      "parallel_tool_calls",
      "prompt_cache_key",
      // Only verified organisations get summaries from OpenAI. Anyone who configured one sees the refusal.
      ...(settings.reasoningSummary === undefined ? ["reasoning.summary"] : []),
    ],
    takesOnlyFunctions: false,
    body: (request) => responsesBody(request, { ...options, settings }),
    async openReader(_, refused) {
      const { ResponsesReader } = await import("./responses-reader.js");
      return new ResponsesReader({ keepsIds: isAzure(provider), refused });
    },
  });
}
