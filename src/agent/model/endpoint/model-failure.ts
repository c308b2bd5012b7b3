import { BrigError, type ErrorCode, isBrigError } from "../../../errors.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { TokenUsage } from "../model-client.js";
import { LONGEST_WAIT_MS, retryAfterInMessage } from "./backoff.js";

export type FailureKind =
  | "auth"
  | "quota"
  | "context-window"
  | "rate-limit"
  | "overloaded"
  | "server"
  | "transport"
  /** The endpoint stopped in the middle of its answer, at a limit or by a filter. */
  | "incomplete"
  | "refused";

/** The cause of every `model.*` error that came from an endpoint. */
export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
  readonly kind: FailureKind;
  readonly status: number | undefined;
  /** What an incomplete response used, if the endpoint counts that. */
  readonly usage: TokenUsage | null;

  constructor(
    message: string,
    options: {
      kind: FailureKind;
      status?: number | undefined;
      usage?: TokenUsage | null | undefined;
      cause?: unknown;
    },
  ) {
    super(message, { cause: options.cause });
    this.kind = options.kind;
    this.status = options.status;
    this.usage = options.usage ?? null;
  }
}

/** An endpoint's error response, or an error within its stream. */
export interface Refusal {
  message: string;
  /** HTTP status; absent for an error within a stream. */
  status?: number | undefined;
  code?: string | null | undefined;
  /** The endpoint's own kind of error. Some endpoints put the code here. */
  type?: string | null | undefined;
  retryAfterMs?: number | null;
  resetsInMs?: number | null;
  hint?: string | undefined;
}

export interface ClassifiedFailure {
  kind: FailureKind;
  error: BrigError;
  canRetry: boolean;
  retryAfterMs: number | null;
}

const kindOfCode: ReadonlyMap<string, FailureKind> = new Map<string, FailureKind>([
  ["context_length_exceeded", "context-window"],
  ["exceed_context_size_error", "context-window"],
  ["insufficient_quota", "quota"],
  ["billing_hard_limit_reached", "quota"],
  ["usage_limit_reached", "quota"],
  ["usage_not_included", "quota"],
  ["invalid_api_key", "auth"],
  ["invalid_prompt", "refused"],
  ["cyber_policy", "refused"],
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["rate_limit_exceeded", "rate-limit"],
]);

/** Messages for a conversation that is too long, from endpoints that have no code for it. */
const tooLong =
  /maximum context length|context[ _](?:window|length|size)|prompt is too long|too many (?:input |prompt )?tokens|tokens? (?:count )?(?:\([^)]*\) )?exceeds?/i;

interface KindTraits {
  code: ErrorCode;
  canRetry: boolean;
  hint: string | undefined;
}

const traits: Record<FailureKind, KindTraits> = {
  auth: { code: "model.auth", canRetry: false, hint: "check the API key of this provider" },
  quota: { code: "model.quota", canRetry: false, hint: "check the plan and billing of this account" },
  "context-window": {
    code: "model.context-window",
    canRetry: false,
    hint: "start a new conversation, or use a model with a larger context window",
  },
  "rate-limit": { code: "model.rate-limit", canRetry: true, hint: "wait, or ask for a higher rate limit" },
  // Not retried: with this code the endpoint asks its clients to slow down.
  overloaded: { code: "model.failed", canRetry: false, hint: "the model is overloaded: try again later" },
  server: {
    code: "model.failed",
    canRetry: true,
    hint: "the endpoint has an internal problem: try again later",
  },
  transport: {
    code: "model.unreachable",
    canRetry: true,
    hint: "check the provider's base_url and the network",
  },
  incomplete: { code: "model.failed", canRetry: false, hint: undefined },
  refused: { code: "model.failed", canRetry: false, hint: undefined },
};

export function classifyRefusal(refusal: Refusal): ClassifiedFailure {
  const { message, status, hint, resetsInMs } = refusal;
  const kind = kindOf(refusal);
  const retryAfterMs =
    refusal.retryAfterMs ?? (kind === "rate-limit" ? retryAfterInMessage(refusal.message) : null);
  if (kind === "quota" && typeof resetsInMs === "number")
    return failure(kind, message, { status, hint: `it is renewed in ${formatDuration(resetsInMs)}` });
  return failure(kind, message, { status, hint, retryAfterMs });
}

/** For a response that did not arrive, or not completely. */
export function transportFailure(
  message: string,
  details: { cause?: unknown; hint?: string | undefined } = {},
): ClassifiedFailure {
  return failure("transport", message, details);
}

/** For a response that cannot be used, and that a retry would not change. */
export function unusableResponse(message: string, hint?: string): BrigError {
  return failure("refused", message, { hint }).error;
}

/** For a response that the endpoint stopped in the middle. `finish` is its word for why. */
export function incompleteResponse(finish: string, usage: TokenUsage | null): BrigError {
  const hint = limits.has(finish) ? limitHint : undefined;
  return failure("incomplete", `Incomplete response returned, reason: ${finish}`, { hint, usage }).error;
}

export function isIncomplete(error: unknown): error is BrigError & { cause: ModelFailure } {
  return isBrigError(error) && error.cause instanceof ModelFailure && error.cause.kind === "incomplete";
}

/** How the two APIs name a limit of tokens. */
const limits: ReadonlySet<string> = new Set(["length", "max_output_tokens"]);
const limitHint =
  "what was complete is kept; raise the endpoint's limit of output tokens, or ask for less at once. " +
  "If it is the context window that is full: model_context_window makes brig compact the conversation in time";

function failure(
  kind: FailureKind,
  message: string,
  details: {
    status?: number | undefined;
    hint?: string | undefined;
    usage?: TokenUsage | null;
    cause?: unknown;
    retryAfterMs?: number | null;
  },
): ClassifiedFailure {
  const { status, usage, cause, retryAfterMs = null } = details;
  const { code, canRetry, hint } = traits[kind];
  const isTooFarOff = canRetry && retryAfterMs !== null && retryAfterMs > LONGEST_WAIT_MS;
  const waitHint = isTooFarOff ? `the endpoint asks to wait for ${formatDuration(retryAfterMs)}` : undefined;
  return {
    kind,
    error: new BrigError(message, {
      code,
      hint: waitHint ?? details.hint ?? hint,
      cause: new ModelFailure(message, { kind, status, usage, cause }),
    }),
    canRetry: canRetry && !isTooFarOff,
    retryAfterMs,
  };
}

function kindOf({ status, code, type, message }: Refusal): FailureKind {
  const named = kindOfCode.get(code ?? "") ?? kindOfCode.get(type ?? "");
  // Outside a stream, an overload is retried like any other server error.
  if (named !== undefined && !(named === "overloaded" && status !== undefined)) return named;
  if (status === undefined) return tooLong.test(message) ? "context-window" : "server";
  if (status === 401 || status === 403) return "auth";
  if (status === 402) return "quota";
  if (status === 429) return "rate-limit";
  if (status >= 500 || status === 408) return "server";
  return (status === 400 || status === 413 || status === 422) && tooLong.test(message)
    ? "context-window"
    : "refused";
}
