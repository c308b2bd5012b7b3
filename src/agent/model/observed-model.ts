import type { ModelClient, TokenUsage } from "./model-client.js";

/**
 * Wraps a model so that the listener hears of each request, before it is sent, and of the tokens that each
 * response used. An error of `onRequest` becomes the error of the request.
 */
export function observedModel(
  model: ModelClient,
  listener: { onRequest: () => void; onUsage: (usage: TokenUsage) => void },
): ModelClient {
  return {
    provider: model.provider,
    model: model.model,
    maxStreamRetries: model.maxStreamRetries,
    takesOnlyFunctions: model.takesOnlyFunctions,
    async *stream(request, signal) {
      listener.onRequest();
      for await (const event of model.stream(request, signal)) {
        if (event.kind === "completed" && event.usage !== null) listener.onUsage(event.usage);
        yield event;
      }
    },
  };
}
