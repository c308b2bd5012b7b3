/** All ways in which brig itself can fail. Test the code; the message is for people and may change. */
export type ErrorCode =
  | "aborted"
  | "agents.budget"
  | "branch.refused"
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
  | "mcp.failed"
  | "mcp.start-failed"
  | "mcp.timed-out"
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
  | "queue.unreachable"
  | "sandbox.canary-sent"
  | "sandbox.gone"
  | "sandbox.port-failed"
  | "sandbox.port-in-use"
  | "sandbox.unknown"
  | "serve.busy"
  | "serve.failed"
  | "serve.quota"
  | "serve.refused"
  | "serve.unknown"
  | "serve.unreachable"
  | "session.busy"
  | "session.invalid"
  | "session.unknown"
  | "setup.failed"
  | "snapshot.failed"
  | "snapshot.invalid"
  | "snapshot.unknown"
  | "store.failed"
  | "task.invalid"
  | "tool.failed"
  | "tool.invalid-input"
  | "tool.unknown"
  | "turn.timed-out"
  | "usage.invalid"
  | "workspace.conflict"
  | "workspace.invalid";

export const GONE_REASONS = [
  "oom",
  "killed",
  "restarted",
  "engine",
  "lease",
  "machine-share",
  "closed",
] as const;

/** Why a sandbox has ended. */
export type GoneReason = (typeof GONE_REASONS)[number];

/** A disk that had no room. What is free was measured right after the failure. */
export interface FullDisk {
  /** "engine": that of the container engine. "brig": that with brig's own files, in `$BRIG_HOME` or the folder of a batch. */
  owner: "engine" | "brig";
  /** A directory on it; null for an engine on another machine. */
  path: string | null;
  /** What can still be written there; null if it is unknown. */
  freeBytes: number | null;
  /** How many files can still be made there; null if it is unknown, or without a limit. */
  freeFiles: number | null;
}

/** The fields of an error besides its message. */
export interface BrigErrorOptions {
  code: ErrorCode;
  /** What the reader can do: one sentence or one command. */
  hint?: string | undefined;
  cause?: unknown;
  /** The errno of a system call that failed, such as "EACCES". */
  errno?: string | undefined;
  /** Only with `sandbox.gone`. */
  reason?: GoneReason | undefined;
  /** If a disk was full. */
  disk?: FullDisk | undefined;
}

/** The only error class of brig. What a command does in a sandbox, such as failing, is never a BrigError. */
export class BrigError extends Error {
  override readonly name = "BrigError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  /** The errno of a system call that failed, in the sandbox or the engine, such as "EACCES"; undefined if unknown. */
  readonly errno: string | undefined;
  readonly reason: GoneReason | undefined;
  /** The full disk because of which it failed. Undefined for any other failure, and if brig could not find out which disk it was. */
  readonly disk: FullDisk | undefined;

  constructor(message: string, options: BrigErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.hint = options.hint;
    this.errno = options.errno;
    this.reason = options.reason;
    this.disk = options.disk;
  }
}

/** The error for something that cannot be done in the way in which it was asked for. */
export function invalidUsage(message: string, hint?: string): BrigError {
  return new BrigError(message, { code: "usage.invalid", hint });
}

/** Whether it is a BrigError, and with this code if one is given. */
export function isBrigError(error: unknown, code?: ErrorCode): error is BrigError {
  return error instanceof BrigError && (code === undefined || error.code === code);
}

/** For texts of one string, such as a warning or an output for the model. */
export function messageWithHint({ message, hint }: BrigError): string {
  return hint === undefined ? message : `${message}\nhint: ${hint}`;
}
