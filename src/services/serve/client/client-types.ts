import type { AttemptResult } from "../../../batch/index.js";
import type { FileType } from "../../../sandbox/index.js";
import type { RemoteExecRecord, RemoteExit, RemoteSandboxRecord } from "../wire/schemas.js";

/** An option of every request: aborting it ends what the request has started. */
export interface RemoteCallOptions {
  signal?: AbortSignal | undefined;
}

/** How to run one command in a sandbox of a service. */
export interface RemoteExecOptions extends RemoteCallOptions {
  /** Default: the sandbox's working directory. */
  cwd?: string | undefined;
  /** Added to the sandbox's variables; null removes one. */
  env?: Readonly<Record<string, string | null>> | undefined;
  /** The whole process tree is killed after this long. */
  timeoutMs?: number | undefined;
  /** Sent to the command, then end of file. */
  stdin?: string | Uint8Array | undefined;
  /** Whether processes that the command leaves behind are ended. */
  endsTree?: boolean | undefined;
}

/** How to keep the output of a command. */
export interface RemoteOutputOptions extends RemoteExecOptions {
  /** The most to keep of each output, half from each end. Default: 1 MiB, at most 8 MiB. */
  maxOutputBytes?: number | undefined;
  /** "utf8" (default) decodes; "buffer" gives the bytes. */
  encoding?: "utf8" | "buffer" | undefined;
}

/** Where the output of a streamed command goes. The command waits while a returned promise is pending. */
export interface RemoteStreamOptions extends RemoteExecOptions {
  onStdout?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  onStderr?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
}

/** What a command did in a sandbox of a service. */
export type RemoteExecResult<Output = string> = Omit<RemoteExecRecord, "stdout" | "stderr" | "output"> & {
  stdout: Output;
  stderr: Output;
  /** Both in the order of arrival. */
  output: Output;
};

/** An entry of a directory in a sandbox of a service. */
export interface RemoteEntry {
  name: string;
  /** The name as bytes, since a name need not be UTF-8. */
  nameBytes: Uint8Array;
  type: FileType;
}

/** The files of a sandbox of a service. Paths are absolute; errors have the codes `file.*`. */
export interface RemoteFiles {
  /** At most 64 MiB at once; with `lengthBytes` a part of a file of any size. */
  read(
    path: string,
    options?: RemoteCallOptions & { offsetBytes?: number | undefined; lengthBytes?: number | undefined },
  ): Promise<Buffer>;
  /** Replaces the file whole; at most 64 MiB. With `parents`, makes the directories above it. */
  write(
    path: string,
    data: string | Uint8Array,
    options?: RemoteCallOptions & { mode?: number | undefined; parents?: boolean | undefined },
  ): Promise<void>;
  /** At most 10 000 entries; `truncated` says that there are more. */
  list(path: string, options?: RemoteCallOptions): Promise<{ entries: RemoteEntry[]; truncated: boolean }>;
  remove(
    path: string,
    options?: RemoteCallOptions & { recursive?: boolean | undefined; force?: boolean | undefined },
  ): Promise<void>;
}

/** A sandbox of a service. Delete it, or use `await using`. Error of every method: `sandbox.gone` once it has ended. */
export interface RemoteSandbox extends AsyncDisposable {
  readonly id: string;
  /** As the service described it when it was created or asked for. */
  readonly record: RemoteSandboxRecord;
  readonly files: RemoteFiles;
  /** Runs a program to its end. A non-zero exit and a timeout are results. An abort ends the command. */
  exec(
    argv: readonly string[],
    options: RemoteOutputOptions & { encoding: "buffer" },
  ): Promise<RemoteExecResult<Buffer>>;
  exec(argv: readonly string[], options?: RemoteOutputOptions): Promise<RemoteExecResult>;
  /** Runs a program and passes its output on as it comes, however much it is. An abort ends the command. */
  stream(argv: readonly string[], options?: RemoteStreamOptions): Promise<RemoteExit>;
  /**
   * Ends everything in the sandbox of a task, and grades in a fresh container what is left. Called again, it gives the
   * same. Error: `usage.invalid` for a sandbox of no task.
   */
  grade(options?: RemoteCallOptions): Promise<AttemptResult>;
  /** Ends everything in it and removes it. */
  delete(options?: RemoteCallOptions): Promise<void>;
}
