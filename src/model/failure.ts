import { BrigError, type ErrorCode } from "../errors.js";
import { retryAfterInMessage } from "./backoff.js";

/** Why a model gave no answer. */
export type FailureKind =
  | "auth"
  | "quota"
  | "context-window"
  | "rate-limit"
  | "server"
  | "transport"
  | "refused";

/** The cause of every `model.*` error that came from an endpoint; tests and callers read `kind`. */
export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
  readonly kind: FailureKind;
  readonly status: number | undefined;

  constructor(message: string, options: { kind: FailureKind; status?: number | undefined; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.kind = options.kind;
    this.status = options.status;
  }
}

/** What an endpoint said instead of an answer. */
export interface Refusal {
  message: string;
  /** HTTP status; absent for a failure within a stream. */
  status?: number | undefined;
  /** The endpoint's own code or type, e.g. `insufficient_quota`. */
  code?: string | null | undefined;
  /** From the response's headers. */
  retryAfterMs?: number | null;
  cause?: unknown;
}

export interface ClassifiedFailure {
  kind: FailureKind;
  error: BrigError;
  canRetry: boolean;
  retryAfterMs: number | null;
}

const kindOfCode: Record<string, FailureKind> = {
  context_length_exceeded: "context-window",
  insufficient_quota: "quota",
  usage_limit_reached: "quota",
  usage_not_included: "quota",
  invalid_api_key: "auth",
  invalid_prompt: "refused",
  cyber_policy: "refused",
  // Overloaded for everyone: trying at once again is what the endpoint asks not to do.
  server_is_overloaded: "refused",
  slow_down: "refused",
  rate_limit_exceeded: "rate-limit",
};

const codeOfKind: Record<FailureKind, ErrorCode> = {
  auth: "model.auth",
  quota: "model.failed",
  "context-window": "model.failed",
  "rate-limit": "model.failed",
  server: "model.failed",
  transport: "model.unreachable",
  refused: "model.failed",
};

const hintOfKind: Record<FailureKind, string | undefined> = {
  auth: "check the API key of this provider",
  quota: "check the plan and billing of this account",
  "context-window":
    "the conversation is longer than the model can read: start anew or use a model with a larger window",
  "rate-limit": "wait, or ask for a higher rate limit",
  server: "the endpoint has a problem of its own: try again later",
  transport: "check the provider's base_url and the network",
  refused: undefined,
};

export function classifyRefusal(refusal: Refusal): ClassifiedFailure {
  const kind = kindOf(refusal);
  return failure(kind, refusal.message, {
    status: refusal.status,
    cause: refusal.cause,
    retryAfterMs:
      refusal.retryAfterMs ?? (kind === "rate-limit" ? retryAfterInMessage(refusal.message) : null),
  });
}

/** Nothing, or not all, came back. */
export function transportFailure(message: string, cause?: unknown): ClassifiedFailure {
  return failure("transport", message, { cause });
}

function failure(
  kind: FailureKind,
  message: string,
  details: { status?: number | undefined; cause?: unknown; retryAfterMs?: number | null },
): ClassifiedFailure {
  const cause = new ModelFailure(message, { kind, status: details.status, cause: details.cause });
  return {
    kind,
    error: new BrigError(message, { code: codeOfKind[kind], hint: hintOfKind[kind], cause }),
    canRetry: kind === "rate-limit" || kind === "server" || kind === "transport",
    retryAfterMs: details.retryAfterMs ?? null,
  };
}

function kindOf({ status, code }: Refusal): FailureKind {
  const byCode = kindOfCode[code ?? ""];
  if (byCode !== undefined) return byCode;
  if (status === undefined) return "server";
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "rate-limit";
  return status >= 500 || status === 408 ? "server" : "refused";
}
