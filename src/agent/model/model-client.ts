import type { BrigError } from "../../errors.js";
import type { ResponseItem } from "./items.js";

/** One request, with the whole conversation: nothing is remembered between requests. */
export interface ModelRequest {
  instructions: string;
  input: readonly ResponseItem[];
  tools: readonly ToolDeclaration[];
  /** A JSON Schema that the final text must match. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
}

/** The declaration of a tool, in the Responses API's format. */
export interface ToolDeclaration {
  readonly type: string;
  /** Absent for hosted tools such as `local_shell`, which `type` already identifies. */
  readonly name?: string;
}

/** Token counts. Cached tokens are part of the input, reasoning tokens part of the output. */
export interface TokenUsage {
  inputTokens: number;
  cachedInputTokens: number;
  /** Input tokens that the endpoint wrote to its cache. Default: 0. */
  cacheWriteInputTokens?: number;
  outputTokens: number;
  reasoningOutputTokens: number;
}

export const noUsage: Readonly<TokenUsage> = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningOutputTokens: 0,
};

export function usageTogether(one: TokenUsage, other: TokenUsage): TokenUsage {
  const cacheWrites = (one.cacheWriteInputTokens ?? 0) + (other.cacheWriteInputTokens ?? 0);
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    ...(cacheWrites === 0 ? {} : { cacheWriteInputTokens: cacheWrites }),
    outputTokens: one.outputTokens + other.outputTokens,
    reasoningOutputTokens: one.reasoningOutputTokens + other.reasoningOutputTokens,
  };
}

/** One event of a response. The last event is `completed` or `broken`. */
export type ModelEvent =
  | { kind: "text-delta"; text: string }
  | { kind: "reasoning-delta"; text: string }
  | { kind: "item"; item: ResponseItem }
  /** `model`: what the endpoint calls the model that answered, if it says that. */
  | { kind: "completed"; usage: TokenUsage | null; model?: string | undefined }
  /** The response ended early. Another request with the items so far may continue it. */
  | BrokenResponse;

/** The end of a response that is not complete. */
export interface BrokenResponse {
  kind: "broken";
  error: BrigError;
  /** How long the endpoint asks to wait before the next request. */
  retryAfterMs: number | null;
  /** The endpoint sent no event within the provider's idle timeout. Default: false. */
  isSilent?: boolean | undefined;
}

/** Sends requests to one model. */
export interface ModelClient {
  /** The provider's id, e.g. `openai` or `scripted`. */
  readonly provider: string;
  readonly model: string;
  /** What requests ask for. Default: nothing, so that the endpoint decides. */
  readonly reasoningEffort?: string | undefined;
  /** How often a broken response may be requested again. */
  readonly maxStreamRetries: number;
  /** Whether it accepts function tools only, and no freeform, local or hosted ones. Default: false. */
  readonly takesOnlyFunctions?: boolean | undefined;
  /**
   * Sends a request and reads the response as it arrives. Throws `model.*` for failures that a retry cannot
   * fix, and the signal's reason after an abort. One of these failures is that the endpoint stopped in the
   * middle of its answer: then the text so far is among the items before it, and a call that was cut off is not.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}
