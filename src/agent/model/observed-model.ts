import { isBrigError } from "../../errors.js";
import { isIncomplete } from "./endpoint/model-failure.js";
import { isToolCall } from "./items.js";
import type { ModelClient, TokenUsage } from "./model-client.js";

/** How a request to a model has ended. */
export interface RequestEnd {
  /** Null if the endpoint does not say it. */
  usage: TokenUsage | null;
  /** The name that the endpoint gives the model that answered; null if it gives none. */
  model: string | null;
  /** Why the model stopped; null if the response did not arrive as a whole. */
  finish: "stop" | "tool_call" | "length" | null;
  /** The code of the error; `aborted` if the request was interrupted. Null for a complete response. */
  failure: string | null;
}

/** What happens to requests. Must not throw, except for `onRequest`, whose error becomes the error of the request. */
interface RequestListener {
  /** Called before the request is sent. */
  onRequest(): void;
  onUsage?(usage: TokenUsage): void;
  onEnd?(end: RequestEnd): void;
}

/** The same model, which tells the listener of each request. */
export function observedModel(model: ModelClient, listener: RequestListener): ModelClient {
  return {
    provider: model.provider,
    model: model.model,
    reasoningEffort: model.reasoningEffort,
    maxStreamRetries: model.maxStreamRetries,
    takesOnlyFunctions: model.takesOnlyFunctions,
    async *stream(request, signal) {
      listener.onRequest();
      let end: RequestEnd = { usage: null, model: null, finish: null, failure: "aborted" };
      let hasCalls = false;
      try {
        for await (const event of model.stream(request, signal)) {
          if (event.kind === "item") hasCalls ||= isToolCall(event.item);
          if (event.kind === "broken") end = { ...end, failure: event.error.code };
          if (event.kind === "completed") {
            const { usage, model: answering = null } = event;
            end = { usage, model: answering, finish: hasCalls ? "tool_call" : "stop", failure: null };
            if (usage !== null) listener.onUsage?.(usage);
          }
          yield event;
        }
      } catch (error) {
        if (isIncomplete(error)) end = { ...end, usage: error.cause.usage, finish: "length" };
        end = { ...end, failure: isBrigError(error) ? error.code : "aborted" };
        throw error;
      } finally {
        listener.onEnd?.(end);
      }
    },
  };
}
