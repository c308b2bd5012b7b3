import type { Readable, Writable } from "node:stream";
import type { CommandEnd, StartFailure } from "../sandbox/index.js";

import type { PatchFiles } from "./patch/patch-files.js";

/** How a program that a tool ran ended. */
export type ToolExit = CommandEnd;

/** Why a program of a tool could not be started. */
export type ToolStartFailure = StartFailure;

/** What the tools need of a sandbox. */
export interface ToolSandbox {
  readonly image?: string;
  /** Starts a program. If it cannot be started, the `exit` of the returned process says why. */
  spawn(argv: readonly string[], options?: ToolSpawnOptions): Promise<ToolProcess>;
  readonly files: ToolFiles & PatchFiles;
  /** Replaces the sandbox's secrets by asterisks. Null or absent without secrets. */
  readonly maskSecrets?: ((text: string) => string) | null;
}

/**
 * Read access to the sandbox's files. Paths are absolute and resolved inside the sandbox. Failures are
 * BrigErrors with `file.*` codes and the `errno` of the system call.
 */
export interface ToolFiles {
  /** Reads a part of a regular file, which is only shorter at the end of the file. Refuses other files. */
  read(path: string, options: ToolReadOptions): Promise<Uint8Array>;
  /** As `read`, but if the part begins in a hole of a sparse file, returns the data after the hole. */
  readPastHole(path: string, options: ToolReadOptions): Promise<{ holeBytes: number; data: Uint8Array }>;
  /** Follows symbolic links. */
  stat(path: string, options: { signal?: AbortSignal | undefined }): Promise<ToolFileStat>;
  /** Passes the entries of a directory to `onEntries`, unsorted and in batches. */
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

/** Options of listing a directory. */
interface ToolListOptions {
  onEntries(entries: readonly ToolDirectoryEntry[]): void;
  signal?: AbortSignal | undefined;
}

/** One entry of a directory. */
export interface ToolDirectoryEntry {
  /** Names need not be UTF-8. */
  nameBytes: Uint8Array;
  /** "file", "directory", "symlink" …; links are not followed. */
  type: string;
}

/** Options of starting a program. */
export interface ToolSpawnOptions {
  /** Absolute path inside the sandbox. */
  cwd?: string | undefined;
  /** Added to the sandbox's own environment; `undefined` removes a name. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** After this time the whole process tree is killed. */
  timeoutMs?: number | undefined;
  /** Aborting kills the whole process tree. */
  signal?: AbortSignal | undefined;
  /** A pseudo-terminal instead of pipes; all output arrives on stdout. */
  pty?: { rows: number; cols: number } | undefined;
  stdin?: "pipe" | "closed" | undefined;
  /** One pipe for stdout and stderr, which keeps their exact order; all output arrives on stdout. */
  mergeOutput?: boolean | undefined;
  /**
   * Ends the processes that the main process leaves running; `exit` resolves when they are gone. Default:
   * they go on.
   */
  endsTree?: boolean | undefined;
  /** The model's call that the program serves, for the record of what its processes try to reach. */
  callId?: string | undefined;
}

/** A started program. */
export interface ToolProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  /** Null with a pty or `mergeOutput`. */
  readonly stderr: Readable | null;
  /** Resolves when the process has ended and its output is complete, even if a child holds a pipe open. */
  readonly exit: Promise<CommandEnd>;
  /** Ends the whole process tree and waits for that; with a signal, only sends that to the process group. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}
