import type { CommandEnd } from "./output/command-end.js";

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
  /** Replaces the file atomically. `mode` is that of a new file; an existing one keeps its own. */
  write(
    path: string,
    data: string | Uint8Array,
    options?: { mode?: number | undefined; signal?: AbortSignal | undefined },
  ): Promise<void>;
  /** Removes what is at the path, with `recursive` a whole tree. A missing path is an error unless `force`. */
  remove(
    path: string,
    options?: {
      recursive?: boolean | undefined;
      force?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<void>;
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
  /** Ends every process in it and removes it. May be called again. */
  close(): Promise<unknown>;
}
