import { ZodError } from "zod";
import { BrigError } from "../errors.js";
import { parseJson } from "../lib/parse-json.js";

const MAX_WORDS = 4000;

/** The engine answered, and did not do what it was asked. */
export class RefusedRequest extends Error {
  readonly status: number;
  /** The engine's own words. */
  readonly words: string;

  constructor(status: number, body: string) {
    const words = engineWords(body).trim().slice(0, MAX_WORDS);
    super(`${words} (HTTP ${status})`);
    this.status = status;
    this.words = words;
  }
}

/** The engine's refusal, when `error` is one; null when the engine was not reached or something else failed. */
export function asRefusal(error: unknown): RefusedRequest | null {
  return error instanceof RefusedRequest ? error : null;
}

/**
 * Whether the engine has certainly not done what it was asked: it said so, or nobody listened. Otherwise it may have, or still may.
 */
export function isAnswered(error: unknown): boolean {
  const cause = error instanceof BrigError ? error.cause : error;
  if (asRefusal(cause) !== null) return true;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return code === "ENOENT" || code === "ECONNREFUSED" || code === "EACCES";
}

/** Of its JSON message, or of an answer that some proxy made. */
function engineWords(body: string): string {
  const json = parseJson(body);
  const isMessage = typeof json === "object" && json !== null && "message" in json;
  return isMessage && typeof json.message === "string" ? json.message : body;
}

/** Turns what a request throws into a BrigError that says which step failed. `doing` completes "cannot …". */
export function engineFailure(cause: unknown, context: { doing: string; address: string }): BrigError {
  if (cause instanceof BrigError) return cause;
  if (cause instanceof ZodError || cause instanceof SyntaxError) return nonsense(cause, context);
  const refusal = asRefusal(cause);
  if (refusal === null) return unreachable(cause, context);
  const { status, words } = refusal;
  if (status === 404 && /no such image|image not known|manifest unknown|pull access denied/i.test(words)) {
    return new BrigError(`cannot ${context.doing}: ${words}`, {
      code: "image.missing",
      hint: "pull or build the image first; brig's own images: brig image build",
      cause,
    });
  }
  return new BrigError(`cannot ${context.doing}: ${words} (HTTP ${status})`, {
    code: "engine.failed",
    cause,
  });
}

/** An error inside the stream of a reply that had begun well, such as a failed pull. */
export function streamedFailure(words: string, doing: string): BrigError {
  const isMissing = /manifest unknown|not found|pull access denied|repository does not exist/i.test(words);
  return new BrigError(`cannot ${doing}: ${words}`, { code: isMissing ? "image.missing" : "engine.failed" });
}

function nonsense(cause: Error, context: { doing: string; address: string }): BrigError {
  return new BrigError(
    `cannot ${context.doing}: ${context.address} answers, but not as a container engine does`,
    {
      code: "engine.failed",
      hint: "is it the address of Docker or Podman?",
      cause,
    },
  );
}

function unreachable(cause: unknown, context: { doing: string; address: string }): BrigError {
  return new BrigError(
    `cannot ${context.doing}: the container engine at ${context.address} does not answer (${reason(cause)})`,
    { code: "engine.unreachable", hint: "is it running? try: brig doctor", cause },
  );
}

const reasons: Record<string, string> = {
  ENOENT: "no such socket",
  ECONNREFUSED: "connection refused",
  EACCES: "permission denied",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  ENOTFOUND: "unknown host",
  ETIMEDOUT: "timed out",
};

/** In a few words why nothing answered. */
export function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === "TimeoutError") return "timed out";
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  return reasons[code] ?? (cause.message || code);
}
