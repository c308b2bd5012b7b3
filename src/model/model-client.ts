import type { BrigError } from "../errors.js";
import type { ResponseItem } from "./items.js";

/** One request: everything the model is to know. Nothing is remembered between requests. */
export interface ModelRequest {
  instructions: string;
  input: readonly ResponseItem[];
  tools: readonly ToolDeclaration[];
  /** A JSON Schema that the final text has to follow. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
}

/** The declaration of a tool, as the Responses API takes it. */
export interface ToolDeclaration {
  readonly type: string;
  /** Absent for kinds of tools that there is one of. */
  readonly name?: string;
}

/** What requests cost, in tokens. The cached ones are among the input's, those of reasoning among the output's. */
export interface TokenUsage {
  inputTokens: number;
  cachedInputTokens: number;
  /** Of the input's, those that the endpoint says it has put into its cache. Default: 0. */
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

/** What one response consists of, in order; the last one is `completed` or `broken`. */
export type ModelEvent =
  | { kind: "text-delta"; text: string }
  | { kind: "reasoning-delta"; text: string }
  /** A finished item. */
  | { kind: "item"; item: ResponseItem }
  | { kind: "completed"; usage: TokenUsage | null }
  /** The response ended early; another request with the items so far may go on. */
  | BrokenResponse;

/** The end of a response that is not complete. */
export interface BrokenResponse {
  kind: "broken";
  error: BrigError;
  /** How long the endpoint asks to wait before the next request. */
  retryAfterMs: number | null;
  /** The endpoint sent nothing that counts for as long as the provider allows. Default: false. */
  isSilent?: boolean | undefined;
}

/** A model that can be asked. */
export interface ModelClient {
  /** The provider's id, e.g. `openai` or `scripted`. */
  readonly provider: string;
  readonly model: string;
  /** How often a broken response may be tried again. */
  readonly maxStreamRetries: number;
  /** Whether it cannot be told of tools that are no functions: freeform, local and hosted ones. Default: false. */
  readonly takesOnlyFunctions?: boolean | undefined;
  /**
   * Sends a request and reads the response as it arrives. Failures that no retry mends are thrown as `model.*`; an abort
   * rejects with the signal's reason.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}
