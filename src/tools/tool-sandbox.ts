import type { Readable, Writable } from "node:stream";
import type { PatchFiles } from "./patch/patch-files.js";

/** What the tools need of a sandbox; the real one offers more. */
export interface ToolSandbox {
  readonly image?: string;
  /** Starts a program. One that cannot be started still gives a process, whose `exit` says why. */
  spawn(argv: readonly string[], options?: ToolSpawnOptions): Promise<ToolProcess>;
  readonly files: ToolFiles & PatchFiles;
}

/**
 * Looking at the sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are BrigErrors with `file.*`
 * codes; their `errno` is what Linux calls the reason.
 */
export interface ToolFiles {
  /** A part of a regular file; anything else is refused at once. Less than was asked for is where the file ends. */
  read(path: string, options: ToolReadOptions): Promise<Uint8Array>;
  /** As `read`, but where the part begins in a hole of a sparse file, it is the data behind the hole. */
  readPastHole(path: string, options: ToolReadOptions): Promise<{ holeBytes: number; data: Uint8Array }>;
  /** Follows symbolic links. */
  stat(path: string, options: { signal?: AbortSignal | undefined }): Promise<ToolFileStat>;
  /** Hands over the entries of a directory, unsorted and some at a time. */
  list(path: string | Uint8Array, options: ToolListOptions): Promise<unknown>;
}

/** The part of a file to read. */
export interface ToolReadOptions {
  offsetBytes: number;
  lengthBytes: number;
  signal?: AbortSignal | undefined;
}

/** What the tools need to know of a file. */
export interface ToolFileStat {
  /** "file", "directory", "fifo" … */
  type: string;
  sizeBytes: number;
}

/** Where the entries of a directory go. */
export interface ToolListOptions {
  onEntries(entries: readonly ToolDirectoryEntry[]): void;
  signal?: AbortSignal | undefined;
}

/** One entry of a directory. */
export interface ToolDirectoryEntry {
  /** A name need not be UTF-8. */
  nameBytes: Uint8Array;
  /** Not of what a link points to: "file", "directory", "symlink" … */
  type: string;
}

/** How a program is started. */
export interface ToolSpawnOptions {
  /** Absolute path inside the sandbox. */
  cwd?: string | undefined;
  /** Added to the sandbox's own environment; `undefined` removes a name. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The whole process tree is killed after this long. */
  timeoutMs?: number | undefined;
  /** Aborting kills the whole process tree. */
  signal?: AbortSignal | undefined;
  /** A pseudo-terminal instead of pipes: everything arrives on stdout. */
  pty?: { rows: number; cols: number } | undefined;
  stdin?: "pipe" | "closed" | undefined;
  /** One pipe for stdout and stderr, so that their order is exact: everything arrives on stdout. */
  mergeOutput?: boolean | undefined;
  /** Nothing outlives the main process: what it leaves running is ended, and `exit` resolves when it is gone. Default: it goes on. */
  endsTree?: boolean | undefined;
}

/** A program that was started. */
export interface ToolProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  /** Null with a pty or `mergeOutput`. */
  readonly stderr: Readable | null;
  /** Resolves when the process has ended and its output is complete, even if a child holds a pipe open. */
  readonly exit: Promise<ToolExit>;
  /** Ends the whole process tree and resolves when it is gone; with a signal, only sends that to the process group. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** How a program ended. */
export interface ToolExit {
  /** 128 + n when signal n ended it, 124 on timeout, 127 or 126 when it could not be started. */
  exitCode: number;
  signal: NodeJS.Signals | null;
  timedOut: boolean;
  outOfMemory: boolean;
  /** Something outlived the main process, and was ended as `endsTree` asks. */
  treeEnded: boolean;
  durationMs: number;
  usage: ResourceUsage;
  /** Why the program could not be started, else null. */
  startFailure: ToolStartFailure | null;
}

/** Why a program could not be started. */
export interface ToolStartFailure {
  /** What failed: "exec" where it is the program itself, "fork" for want of a process, "cwd", "streams", "request" … */
  stage: string;
  /** What Linux calls the reason, such as "ENOENT"; undefined where the sandbox did not get as far as to ask the kernel. */
  errno: string | undefined;
  /** As models read it. The program's name in it can be any text. */
  message: string;
}

/** What a command and the children it waited for consumed. */
export interface ResourceUsage {
  userMs: number;
  systemMs: number;
  maxRssBytes: number;
}
