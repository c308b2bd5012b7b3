import type { Readable, Writable } from "node:stream";
import type { CommandEnd } from "./output/command-end.js";
import type { RestorePoint, RestorePointOptions, UndoneCall } from "./points/restore-point.js";
import type { Proof } from "./proof/proof.js";
import type { Receipt } from "./receipt/receipt.js";

/** Options of a command. Durations are in milliseconds, sizes in bytes. */
export interface CommandOptions {
  /** Absolute path inside the sandbox. Default: the sandbox's `workingDirectory`. */
  cwd?: string | undefined;
  /** Added to the sandbox's own environment (PATH, HOME, LANG …); null or undefined removes a name. */
  env?: Readonly<Record<string, string | null | undefined>> | undefined;
  /** The whole process tree is killed after this long. Default: no limit. */
  timeoutMs?: number | undefined;
  /** Sent to the command, then end of file. Default: end of file at once. */
  stdin?: string | Uint8Array | undefined;
  /** Aborting kills the process tree, and the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** The most to keep of each of stdout, stderr and output, half from each end. */
  maxOutputBytes?: number | undefined;
  /**
   * Nothing outlives the main process: processes that it leaves behind have 250 ms to end, then get SIGTERM
   * and SIGKILL, and the call ends when they are gone. Default: they run on for as long as the sandbox.
   */
  endsTree?: boolean | undefined;
  /** "utf8" (default) decodes, replacing invalid bytes; "buffer" gives the bytes. */
  encoding?: "utf8" | "buffer" | undefined;
}

/** The outcome of a command. A non-zero exit, a timeout or a missing program is a value here, not an error. */
export interface CommandResult<Output = string>
  extends Omit<CommandEnd, "signal" | "startFailure" | "usage"> {
  /** The signal that ended it, such as "SIGKILL", or null. */
  signal: string | null;
  stdout: Output;
  stderr: Output;
  /** Both streams in the order of arrival. */
  output: Output;
  /** True when `maxOutputBytes` cut something; the text says so, too. */
  truncated: boolean;
  /** The bytes that `maxOutputBytes` left out of stdout and stderr. */
  omittedBytes: { stdout: number; stderr: number };
}

/** The size of a terminal in characters, at most 65 535 each. */
export interface PtySize {
  rows: number;
  cols: number;
}

/** Options for starting a process. An option that `CommandOptions` has as well means the same. */
export interface PortableSpawnOptions {
  cwd?: string | undefined;
  env?: CommandOptions["env"];
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** A pseudo-terminal instead of pipes: one merged stream on stdout, line discipline, ctrl-C. */
  pty?: PtySize | undefined;
  /** "pipe" (default), or "closed": end of file at once. */
  stdin?: "pipe" | "closed" | undefined;
  /** Send stdout and stderr through one pipe, in exact order. Everything arrives on stdout. */
  mergeOutput?: boolean | undefined;
  /**
   * Nothing outlives the main process: processes that it leaves behind have 250 ms to end, then get SIGTERM
   * and SIGKILL as `kill` sends them, and `exit` resolves when they are gone. Default: they run on for as
   * long as the sandbox.
   */
  endsTree?: boolean | undefined;
}

/** A running process in a sandbox, of this process or of a service. */
export interface PortableProcess {
  /** Null when stdin is "closed". */
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  /** Null with a pty or `mergeOutput`. */
  readonly stderr: Readable | null;
  /** Resolves when the process has ended and its output is complete. */
  readonly exit: Promise<{ exitCode: number; signal: string | null; timedOut: boolean }>;
  /**
   * If no signal is given, ends the whole process tree (SIGTERM, then SIGKILL after 500 ms) and resolves when it
   * is gone. Otherwise sends the signal to the process group (with a pty: to the foreground group).
   */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Changes the size of the terminal. Only with a pty. */
  resize(size: PtySize): void;
}

/** The kind of a file. */
export type FileType = (typeof FILE_TYPES)[number];

export const FILE_TYPES = [
  "file",
  "directory",
  "symlink",
  "fifo",
  "socket",
  "char-device",
  "block-device",
  "unknown",
] as const;

/** The metadata of a file. */
export interface PortableStat {
  type: FileType;
  sizeBytes: number;
  /** Permission bits, e.g. 0o644. */
  mode: number;
  modifiedMs: number;
  uid: number;
  gid: number;
  /** The target of a symbolic link, else null. */
  linkTarget: string | null;
}

/** A change in a directory. */
export interface WatchedChange {
  /** A file that takes the place of another one, or comes from elsewhere, counts as created; the one that left its place, as renamed. */
  type: "create" | "write" | "remove" | "rename" | "chmod";
  /** Relative to the directory, and empty for itself. What is not UTF-8 is replaced. */
  path: string;
  /** The path as bytes, since names need not be UTF-8. */
  pathBytes: Uint8Array;
}

/**
 * The changes in a directory since the watch has begun, for one reader. They end with the directory, and with `close`. Error of the reader:
 * `file.failed` if changes were lost because it was too slow.
 */
export interface FileWatch extends AsyncIterable<WatchedChange>, AsyncDisposable {
  close(): Promise<void>;
}

/** Files as the sandbox's own user sees them. Paths are absolute. Errors are BrigErrors with `file.*` codes. */
export interface PortableFiles {
  /** Reads a regular file. Refuses a FIFO, device, socket or directory at once. */
  read(
    path: string,
    options?: {
      /** Default: 0. */
      offsetBytes?: number | undefined;
      /** The number of bytes to read; the file may end earlier. Default: to the end of the file. */
      lengthBytes?: number | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<Buffer>;
  /** Works like `read` for files of any size: gives pieces, at the pace of whoever reads them. Breaking off ends it. */
  readStream(
    path: string,
    options?: {
      offsetBytes?: number | undefined;
      lengthBytes?: number | undefined;
      signal?: AbortSignal | undefined;
    },
  ): AsyncIterable<Buffer>;
  /** Replaces the file atomically. `mode` is that of a new file; an existing one keeps its own. */
  write(
    path: string,
    data: string | Uint8Array,
    options?: { mode?: number | undefined; signal?: AbortSignal | undefined },
  ): Promise<void>;
  /** Works like `write` for files of any size. If the content fails, the file stays as it was. */
  writeStream(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options?: { mode?: number | undefined; signal?: AbortSignal | undefined },
  ): Promise<void>;
  /** A link is followed unless `followSymlinks` is false. */
  stat(
    path: string,
    options?: { followSymlinks?: boolean | undefined; signal?: AbortSignal | undefined },
  ): Promise<PortableStat>;
  /** Makes a directory; with `recursive`, works like `mkdir -p`. */
  mkdir(
    path: string,
    options?: {
      recursive?: boolean | undefined;
      mode?: number | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<void>;
  /** Replaces an existing file, as rename(2) does. */
  rename(from: string, to: string, options?: { signal?: AbortSignal | undefined }): Promise<void>;
  /** Removes what is at the path, with `recursive` a whole tree. A missing path is an error unless `force`. */
  remove(
    path: string,
    options?: {
      recursive?: boolean | undefined;
      force?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<void>;
  /**
   * Watches what is in a directory, with `recursive` also what is in those below it. Changes from when it resolves on are told. What comes into
   * a new directory at the moment when that is made may be told twice.
   */
  watch(
    path: string,
    options?: { recursive?: boolean | undefined; signal?: AbortSignal | undefined },
  ): Promise<FileWatch>;
}

/**
 * What a `Sandbox` of this process and a sandbox of a service have in common: code that asks for no more runs in
 * either. Close it, or use `await using`. Errors of every method once it has ended: `sandbox.gone`, or `serve.unknown` for one
 * that its service has removed.
 */
export interface PortableSandbox extends AsyncDisposable {
  readonly id: string;
  readonly image: string;
  /** The directory in which commands start. */
  readonly workingDirectory: string;
  readonly files: PortableFiles;
  /** Runs a program to its end. A non-zero exit and a timeout are results. An abort ends the command. */
  exec(
    argv: readonly string[],
    options: CommandOptions & { encoding: "buffer" },
  ): Promise<CommandResult<Buffer>>;
  exec(argv: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /**
   * Starts a program and returns its streams. A missing program is an exit code, 127. Error: `exec.bad-cwd`, here or of the
   * process's `exit`.
   */
  spawn(argv: readonly string[], options?: PortableSpawnOptions): Promise<PortableProcess>;
  /** Ends every process in it and removes it. May be called again. */
  close(): Promise<unknown>;
}

/** What a sandbox of this process and a sandbox of a service can do with a copy-on-write workspace. */
export interface PortableWorkspace {
  /** Stores what has changed since the last restore point. Null if nothing has. */
  restorePoint(options?: RestorePointOptions): Promise<RestorePoint | null>;
  /** The restore points so far, in their order. */
  restorePoints(options?: RestorePointOptions): Promise<RestorePoint[]>;
  /** Makes the workspace as it was at a restore point, or at the start with 0. Null if nothing differs. Error: `snapshot.unknown`. */
  restore(point: number, options?: RestorePointOptions): Promise<RestorePoint | null>;
  /** Makes the workspace as it was before the last restore point that was not undone yet. Null if there is nothing to undo. */
  undo(options?: RestorePointOptions): Promise<UndoneCall | null>;
}

/** What a sandbox that another process keeps says of itself, to whoever asks. */
export interface PortableAccount {
  /** What the kernel said of its policy before the first command. */
  proof(options?: { signal?: AbortSignal | undefined }): Promise<PortableProof>;
  /** What it has left, once it was removed. Errors: `usage.invalid` while it is there; `serve.unknown` if that was long ago. */
  receipt(options?: { signal?: AbortSignal | undefined }): Promise<PortableReceipt>;
}

/** A `Proof` of another process. */
export interface PortableProof extends Omit<Proof, "differences" | "notProvable"> {
  differences: { assertion: string; promised: string; kernel: string }[];
  notProvable: { assertion: string; promised: string; kernel: string; reason: string }[];
}

/** The part of a receipt that says which files may run by themselves later. */
export type PortableReceipt = Pick<Receipt, "findings" | "omitted" | "incomplete">;

/** A sandbox of `brig up`, as `Sandbox.connect` gives it. Without a copy-on-write workspace there are no restore points: `usage.invalid`. */
export interface ConnectedSandbox extends PortableSandbox, PortableWorkspace, PortableAccount {}
