import { AuthorizationResponseError, ClientError, ResponseBodyError } from "openid-client";
import { BrigError, type ErrorCode } from "../../../../errors.js";
import { errnoOf } from "../../../../lib/errno.js";
import { neutraliseLine } from "../../../../lib/terminal/terminal.js";

export interface IssuerFailure {
  /** Follows "cannot" in the message. */
  doing: string;
  issuer: string;
  secrets?: readonly string[];
  signal?: AbortSignal | undefined;
}

const MAX_WORDS_CHARS = 300;

/**
 * Turns an error of a request to an issuer into a BrigError: `model.unreachable` without an answer,
 * `model.failed` for an invalid answer, `model.auth` for a refusal. openid-client's errors contain whole
 * answers, tokens included, so they are not attached as the cause.
 */
export function issuerFailure(error: unknown, failure: IssuerFailure): BrigError {
  if (failure.signal?.aborted && failure.signal.reason instanceof BrigError) return failure.signal.reason;
  if (error instanceof BrigError) return error;
  const { code, reason, hint } = classified(error, failure.secrets ?? []);
  return new BrigError(`cannot ${failure.doing}: ${failure.issuer} ${reason}`, { code, hint });
}

interface Classified {
  code: ErrorCode;
  reason: string;
  hint?: string;
}

function classified(error: unknown, secrets: readonly string[]): Classified {
  const refusal = (...words: readonly (string | undefined)[]): Classified => {
    const said = words.filter((one) => one !== undefined).map((one) => shown(one, secrets));
    return { code: "model.auth", reason: `refuses: ${said.join(", ")}`, hint: "log in again: brig login" };
  };
  if (error instanceof AuthorizationResponseError) return refusal(error.error, error.error_description);
  if (error instanceof ResponseBodyError) {
    if (error.status >= 500 || error.status === 429)
      return {
        code: "model.unreachable",
        reason: `answers with status ${error.status}`,
        hint: "try again later",
      };
    return refusal(error.error, error.error_description);
  }
  const status = statusOf(error);
  if (status === 400 || status === 401) return refusal(`status ${status}`);
  if (status !== null)
    return {
      code: status >= 500 ? "model.unreachable" : "model.failed",
      reason: `answers with status ${status}`,
    };
  const fault = networkFault(error);
  if (fault !== null)
    return { code: "model.unreachable", reason: fault, hint: "check the network and oauth.issuer" };
  const why = shown(deepestMessage(error), secrets);
  return { code: "model.failed", reason: `sent an answer that cannot be trusted: ${why}` };
}

function statusOf(error: unknown): number | null {
  const cause = error instanceof ClientError ? error.cause : null;
  return cause instanceof Response ? cause.status : null;
}

function networkFault(error: unknown): string | null {
  for (const one of chain(error)) {
    if (one.name === "TimeoutError") return "does not answer in time";
    if (one instanceof TypeError && one.message === "fetch failed")
      return `cannot be reached${errnoOf(one.cause) === undefined ? "" : ` (${errnoOf(one.cause)})`}`;
  }
  return null;
}

/** openid-client's innermost message names the check that failed, and does not quote the answer. */
function deepestMessage(error: unknown): string {
  return [...chain(error)].at(-1)?.message ?? "unknown fault";
}

function* chain(error: unknown): Iterable<Error> {
  const seen = new Set<unknown>();
  for (let one = error; one instanceof Error && !seen.has(one); one = one.cause) {
    seen.add(one);
    yield one;
  }
}

/** One line for a terminal. Secrets are removed before it is cut: half of one would not be found. */
function shown(words: string, secrets: readonly string[]): string {
  const redacted = secrets
    .filter((one) => one !== "")
    .reduce((text, one) => text.replaceAll(one, "[secret]"), words);
  return neutraliseLine(redacted.slice(0, MAX_WORDS_CHARS));
}
