import type { Readable, Writable } from "node:stream";

/** How one command is run. Every duration is in milliseconds, every size in bytes. */
export interface ExecOptions {
  /** Absolute path inside the sandbox. Default: the workspace, or `/` without one. */
  cwd?: string | undefined;
  /** Added to the sandbox's own environment (PATH, HOME, LANG …); `undefined` removes a name. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The whole process tree is killed after this long. Default: no limit. */
  timeoutMs?: number | undefined;
  /** Sent to the command, then end of file. Default: end of file at once. */
  stdin?: string | Uint8Array | undefined;
  /** Aborting kills the process tree; the call rejects with the signal's reason once the tree is gone. */
  signal?: AbortSignal | undefined;
  /**
   * Called with each piece of output as it arrives; the command waits while a returned promise is pending.
   */
  onStdout?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  onStderr?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  /**
   * How much of each of stdout, stderr and output is kept, half from the head and half from the tail. Default
   * 8 MiB.
   */
  maxOutputBytes?: number | undefined;
  /**
   * Nothing outlives the main process: what it leaves running has 250 ms to end by itself, then SIGTERM and
   * SIGKILL as `kill` sends them, and the call ends when it is gone. Default: it goes on for as long as the
   * sandbox.
   */
  endsTree?: boolean | undefined;
  /** "utf8" (default) decodes, replacing invalid bytes; "buffer" gives the bytes. */
  encoding?: "utf8" | "buffer" | undefined;
}

/** What a command did. A non-zero exit, a timeout or a missing program is a value here, not an error. */
export interface ExecResult<Output = string> {
  /** The exit code; 128 + n when signal n ended it; 124 on timeout; 127 not found; 126 not executable. */
  exitCode: number;
  /** "SIGKILL" and the like when a signal ended it, else null. */
  signal: NodeJS.Signals | null;
  stdout: Output;
  stderr: Output;
  /** Both streams in the order of arrival. */
  output: Output;
  durationMs: number;
  timedOut: boolean;
  /** True when `maxOutputBytes` cut something; the cut is also announced in the text. */
  truncated: boolean;
  /** Bytes left out of stdout and stderr by `maxOutputBytes`. */
  omittedBytes: { stdout: number; stderr: number };
  /** The kernel killed a process of this sandbox for lack of memory while the command ran. */
  outOfMemory: boolean;
  /** Something outlived the main process, and was ended as `endsTree` asks. */
  treeEnded: boolean;
  /** CPU time and peak memory of the command and the children it waited for. */
  usage: { userMs: number; systemMs: number; maxRssBytes: number };
}

/** Of a terminal, in characters: at most 65 535. */
export interface PtySize {
  rows: number;
  cols: number;
}

/** How a process is started. What has the name of one of `ExecOptions` means the same. */
export interface SpawnOptions {
  cwd?: string | undefined;
  env?: Readonly<Record<string, string | undefined>> | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** A pseudo-terminal instead of pipes: one merged stream on stdout, line discipline, ctrl-C. */
  pty?: PtySize | undefined;
  /** "pipe" (default) or "closed": end of file at once. */
  stdin?: "pipe" | "closed" | undefined;
  /** Send stdout and stderr through one pipe, so that their order is exact. Everything arrives on stdout. */
  mergeOutput?: boolean | undefined;
  /**
   * Nothing outlives the main process: what it leaves running has 250 ms to end by itself, then SIGTERM and
   * SIGKILL as `kill` sends them, and `exit` resolves when it is gone. Default: it goes on for as long as the
   * sandbox.
   */
  endsTree?: boolean | undefined;
}

/** How a spawned process ended. */
export interface ExitStatus {
  exitCode: number;
  signal: NodeJS.Signals | null;
  timedOut: boolean;
  outOfMemory: boolean;
  /** Something outlived the main process, and was ended as `endsTree` asks. */
  treeEnded: boolean;
  durationMs: number;
  usage: { userMs: number; systemMs: number; maxRssBytes: number };
  /** Set when the program could not be started at all: exitCode is then 127 or 126. */
  startFailure: StartFailure | null;
}

/** Why a program could not be started. */
export interface StartFailure {
  /**
   * What failed: a process for it, its streams, its working directory, its execution, or the request; "none":
   * it was ended before.
   */
  stage: "none" | "fork" | "streams" | "cwd" | "exec" | "request";
  /** What Linux calls the reason, such as "ENOENT". */
  errno: string;
  /** For people; it may change. */
  message: string;
}

/** A running process in the sandbox. */
export interface SandboxProcess {
  /** Null when stdin is "closed". */
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  /** Null with a pty or `mergeOutput`. */
  readonly stderr: Readable | null;
  /**
   * Resolves when the process has ended and its output is complete (or 250 ms later if a child holds the
   * pipe).
   */
  readonly exit: Promise<ExitStatus>;
  /**
   * Without a signal: ends the whole process tree (SIGTERM, then SIGKILL after 500 ms) and resolves when it
   * is gone. With one: sends it to the process group (with a pty: the foreground group).
   */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Only with a pty. */
  resize(size: PtySize): void;
}

/** What a name in a directory stands for. */
export type FileType =
  | "file"
  | "directory"
  | "symlink"
  | "fifo"
  | "socket"
  | "char-device"
  | "block-device"
  | "unknown";

/** What is known of a file. */
export interface FileStat {
  type: FileType;
  sizeBytes: number;
  /** Permission bits, e.g. 0o644. */
  mode: number;
  modifiedMs: number;
  uid: number;
  gid: number;
  /** Device and inode, to tell two names of one file. */
  dev: bigint;
  ino: bigint;
  /** The link's text when type is "symlink". */
  linkTarget: string | null;
}

/** A name in a directory. */
export interface DirectoryEntry {
  /** The name as bytes: a name need not be UTF-8. */
  nameBytes: Uint8Array;
  /** Decoded, invalid bytes replaced. */
  name: string;
  type: FileType;
}

/** How paths are resolved. */
export interface PathOptions {
  /**
   * Fail with `file.symlink` where a name of the path is a symbolic link, also one that is put there
   * meanwhile. A name that is renamed or removed may itself be one. Default: links are followed.
   */
  refuseSymlinks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** Which part of a file is read. */
export interface ReadOptions extends PathOptions {
  /** Default: 0. */
  offsetBytes?: number | undefined;
  /** Less is read where the file ends. Default: to its end. */
  lengthBytes?: number | undefined;
  /**
   * Refuse a file larger than this with `file.too-large`. Default 256 MiB; no limit with an explicit length.
   */
  maxBytes?: number | undefined;
}

/** A part of a file that may have holes. */
export interface FilePart {
  /** Zeros that the file does not store; they come before the data. */
  holeBytes: number;
  data: Buffer;
}

/** One of several files to be written. */
export interface FileWrite {
  path: string;
  data: string | Uint8Array;
  /** Of a new file. Default: 0o644. */
  mode?: number | undefined;
}

/** How far several writes came. */
export interface WritesDone {
  /** How many files were written, from the first on. */
  written: number;
  /** Why the one after them was not: a BrigError, or the reason of an abort. */
  failure: unknown;
}

/** How a directory is listed. */
export interface ListOptions {
  /**
   * Called with some entries at a time as they arrive, for directories of any size; the result is then empty.
   */
  onEntries?: ((entries: DirectoryEntry[]) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Files as the sandbox's own user sees them: every path is resolved by the kernel inside the container, never
 * on the host. Paths are absolute. Failures are BrigErrors with `file.*` codes; `errno` is what Linux calls
 * the reason.
 */
export interface SandboxFiles {
  /** Regular files only: a FIFO, device, socket or directory is refused at once. */
  read(path: string, options?: ReadOptions): Promise<Buffer>;
  /**
   * As `read` of a part, but where that begins in a hole of a sparse file, it is the data behind the hole.
   */
  readPastHole(
    path: string,
    options: { offsetBytes: number; lengthBytes: number; signal?: AbortSignal | undefined },
  ): Promise<FilePart>;
  /** Replaces the file atomically (temporary file and rename), keeping its mode; follows a symbolic link. */
  write(path: string, data: string | Uint8Array, options?: PathOptions & { mode?: number }): Promise<void>;
  /**
   * Writes files one after the other, as `write` does, up to the first that fails: faster than a call for
   * each.
   */
  writeEach(files: readonly FileWrite[], options?: PathOptions): Promise<WritesDone>;
  stat(path: string, options?: PathOptions & { followSymlinks?: boolean }): Promise<FileStat>;
  /**
   * Unsorted entries of one directory, without `.` and `..`. The path may be bytes, as a name need not be
   * UTF-8.
   */
  list(path: string | Uint8Array, options?: ListOptions): Promise<DirectoryEntry[]>;
  /** As `mkdir -p` with `recursive`. */
  mkdir(path: string, options?: PathOptions & { recursive?: boolean; mode?: number }): Promise<void>;
  /** Replaces a file that is there, as rename(2) does. */
  rename(from: string, to: string, options?: PathOptions): Promise<void>;
  /**
   * A file, link or empty directory; with `recursive` a whole tree. A missing path is an error unless
   * `force`.
   */
  remove(path: string, options?: PathOptions & { recursive?: boolean; force?: boolean }): Promise<void>;
}
