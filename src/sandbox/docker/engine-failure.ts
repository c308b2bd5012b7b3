import { BrigError, isBrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { ShapeError } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";

const MAX_WORDS = 1000;
const LAST_WORDS = 200;

/** The engine answered with an error. */
export class RefusedRequest extends Error {
  readonly status: number;
  /** The engine's own message. */
  readonly words: string;

  constructor(status: number, body: string) {
    const words = shortened(engineWords(body).trim());
    super(`${words} (HTTP ${status})`);
    this.status = isGone(body) ? 404 : status;
    this.words = words;
  }
}

/** Null if the engine was not reached, or if something else failed. */
export function asRefusal(error: unknown): RefusedRequest | null {
  return error instanceof RefusedRequest ? error : null;
}

/**
 * Whether the engine certainly did not do what it was asked: it said so, or it was not reached. In all other
 * cases it may have done it, or may still do it.
 */
export function isDefiniteFailure(error: unknown): boolean {
  // brig itself refused, before it asked.
  if (isBrigError(error, "policy.not-enforced") || isBrigError(error, "image.missing")) return true;
  const cause = error instanceof BrigError ? error.cause : error;
  if (asRefusal(cause) !== null) return true;
  return ["ENOENT", "ECONNREFUSED", "EACCES"].includes(errnoOf(cause) ?? "");
}

/** Podman answers with 500 about what is removed while it looks at it, and names the cause in a field of its own. */
function isGone(body: string): boolean {
  const json = parseJson(body);
  const hasCause = typeof json === "object" && json !== null && "cause" in json;
  return hasCause && (json.cause === "no such container" || json.cause === "no such volume");
}

/** The message in the JSON body; the whole body if a proxy sent something else. */
function engineWords(body: string): string {
  const json = parseJson(body);
  const isMessage = typeof json === "object" && json !== null && "message" in json;
  return isMessage && typeof json.message === "string" ? json.message : body;
}

/** Turns an error of a request into a BrigError. `doing` follows "cannot" in its message. */
export function engineFailure(cause: unknown, context: { doing: string; address: string }): BrigError {
  if (cause instanceof BrigError) return cause;
  if (cause instanceof ShapeError || cause instanceof SyntaxError) return notAnEngine(cause, context);
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
    hint: hidesFolder(words) ? SHARE_FOLDER : undefined,
    errno: errnoIn(words),
    cause,
  });
}

/** Whether the engine does not have a folder of this machine: Docker Desktop's virtual machine has those that are shared with it. */
function hidesFolder(words: string): boolean {
  return /^(?:mounts denied\b|error while creating mount source path)|bind source path does not exist/i.test(
    words,
  );
}

const SHARE_FOLDER =
  "let the engine see that folder: in Docker Desktop under Settings, Resources, File sharing; or use one that it sees";

/**
 * The engine names errors of system calls only in words, and at their end. What comes before may be names of files, which somebody
 * in a container has chosen.
 */
export function errnoIn(words: string): string | undefined {
  const end =
    /(no space left on device|disk quota exceeded|file name too long|too many open files)(?:: unknown)?\W*$/i.exec(
      words,
    );
  return end?.[1] && errnos[end[1].toLowerCase()];
}

const errnos: Record<string, string> = {
  "no space left on device": "ENOSPC",
  "disk quota exceeded": "EDQUOT",
  "file name too long": "ENAMETOOLONG",
  "too many open files": "EMFILE",
};

/** The end says what went wrong. */
function shortened(words: string): string {
  if (words.length <= MAX_WORDS) return words;
  return `${words.slice(0, MAX_WORDS - LAST_WORDS)} … ${words.slice(-LAST_WORDS)}`;
}

/** An error in the stream of a reply that began with success, such as a failed pull. */
export function streamedFailure(words: string, doing: string): BrigError {
  const isMissing = /manifest unknown|not found|pull access denied|repository does not exist/i.test(words);
  return new BrigError(`cannot ${doing}: ${words}`, {
    code: isMissing ? "image.missing" : "engine.failed",
    errno: errnoIn(words),
  });
}

function notAnEngine(cause: Error, context: { doing: string; address: string }): BrigError {
  return new BrigError(
    `cannot ${context.doing}: ${context.address} answers, but not like a container engine`,
    { code: "engine.failed", hint: "check that it is the address of Docker or Podman", cause },
  );
}

function unreachable(cause: unknown, context: { doing: string; address: string }): BrigError {
  return new BrigError(
    `cannot ${context.doing}: the container engine at ${context.address} does not answer (${reason(cause)})`,
    {
      code: "engine.unreachable",
      hint: hintOnConnection([cause]) ?? "check that it is running; try: brig doctor",
      cause,
    },
  );
}

/** There is no connection to the engine, for a reason of its own kind. */
export class UnusableConnection extends Error {
  readonly hint: string;

  constructor(message: string, { hint, cause }: { hint: string; cause?: unknown }) {
    super(message, { cause });
    this.hint = hint;
  }
}

/** Advice for the case that brig could not open a connection at all, so that no engine is to blame; null in other cases. */
export function hintOnConnection(causes: readonly unknown[]): string | null {
  const unusable = causes.find((cause) => cause instanceof UnusableConnection);
  if (unusable !== undefined) return unusable.hint;
  const lacks = causes.some((cause) => ["EMFILE", "ENFILE"].includes(errnoOf(cause) ?? ""));
  return lacks ? "allow more open files, for example with: ulimit -n 4096" : null;
}

const reasons: Record<string, string> = {
  ENOENT: "no such socket",
  ECONNREFUSED: "connection refused",
  EACCES: "permission denied",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  ENOTFOUND: "unknown host",
  ETIMEDOUT: "timed out",
  EMFILE: "brig has no file descriptors left",
  ENFILE: "this machine has no file descriptors left",
};

/** Says in a few words why the engine does not answer. */
export function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === "TimeoutError") return "timed out";
  const code = errnoOf(cause) ?? "";
  return reasons[code] ?? (cause.message || code);
}
