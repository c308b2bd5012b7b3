/** Every way brig itself can fail. Callers test the code; the message is for people and may change. */
export type ErrorCode =
  | "aborted"
  | "config.invalid"
  | "engine.failed"
  | "engine.too-old"
  | "engine.unreachable"
  | "exec.bad-cwd"
  | "exec.invalid"
  | "file.exists"
  | "file.failed"
  | "file.is-directory"
  | "file.not-directory"
  | "file.not-found"
  | "file.not-permitted"
  | "file.not-regular"
  | "file.read-only"
  | "file.symlink"
  | "file.too-large"
  | "image.build-failed"
  | "image.missing"
  | "model.auth"
  | "model.context-window"
  | "model.failed"
  | "model.quota"
  | "model.rate-limit"
  | "model.script"
  | "model.unreachable"
  | "policy.invalid"
  | "policy.not-enforced"
  | "protocol.invalid"
  | "sandbox.gone"
  | "session.busy"
  | "session.invalid"
  | "session.unknown"
  | "tool.failed"
  | "tool.invalid-input"
  | "tool.unknown"
  | "turn.timed-out"
  | "usage.invalid"
  | "workspace.invalid";

/** Why a sandbox no longer answers. */
export type GoneReason = "oom" | "killed" | "engine" | "lease" | "closed";

/** What an error has besides its message. */
export interface BrigErrorOptions {
  code: ErrorCode;
  /** What the reader can do about it: one sentence or one command. */
  hint?: string | undefined;
  cause?: unknown;
  /** What Linux calls the failure of a system call, such as "EACCES". */
  errno?: string | undefined;
  /** Only with `sandbox.gone`. */
  reason?: GoneReason | undefined;
}

/** The one error class of brig. What a command does inside a sandbox is a value, never a BrigError. */
export class BrigError extends Error {
  override readonly name = "BrigError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  /** What Linux calls the failure in the sandbox, such as "EACCES"; undefined where none is known. */
  readonly errno: string | undefined;
  readonly reason: GoneReason | undefined;

  constructor(message: string, options: BrigErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.hint = options.hint;
    this.errno = options.errno;
    this.reason = options.reason;
  }
}

/** Whether it is one of brig's errors, and of that code where one is named. */
export function isBrigError(error: unknown, code?: ErrorCode): error is BrigError {
  return error instanceof BrigError && (code === undefined || error.code === code);
}
