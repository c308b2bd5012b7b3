import type { AttemptResult } from "../../../batch/index.js";
import type {
  CommandOptions,
  DirectoryEntry,
  PortableFiles,
  PortableSandbox,
} from "../../../sandbox/index.js";
import type { RemoteExit, RemoteSandboxRecord } from "../wire/schemas.js";

/** An option of every request: aborting it ends what the request has started. */
export interface RemoteCallOptions {
  signal?: AbortSignal | undefined;
}

/** How to run a command whose output is passed on. The command waits while a returned promise is pending. */
export interface RemoteStreamOptions extends Omit<CommandOptions, "maxOutputBytes" | "encoding"> {
  onStdout?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  onStderr?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
}

/** The files of a sandbox of a service. */
export interface RemoteFiles extends PortableFiles {
  /** At most 64 MiB at once; with `lengthBytes` a part of a file of any size. */
  read: PortableFiles["read"];
  /** Replaces the file whole; at most 64 MiB. With `parents`, makes the directories above it. */
  write(
    path: string,
    data: string | Uint8Array,
    options?: RemoteCallOptions & { mode?: number | undefined; parents?: boolean | undefined },
  ): Promise<void>;
  /** At most 10 000 entries; `truncated` says that there are more. */
  list(path: string, options?: RemoteCallOptions): Promise<{ entries: DirectoryEntry[]; truncated: boolean }>;
}

/** A sandbox of a service. Of a command's output it keeps 1 MiB each unless `maxOutputBytes` says otherwise, which may be 8 MiB. */
export interface RemoteSandbox extends PortableSandbox {
  /** As the service described it when it was created or asked for. */
  readonly record: RemoteSandboxRecord;
  readonly files: RemoteFiles;
  /** Runs a program and passes its output on as it comes, however much it is. An abort ends the command. */
  stream(argv: readonly string[], options?: RemoteStreamOptions): Promise<RemoteExit>;
  /**
   * Ends everything in the sandbox of a task, and grades in a fresh container what is left. Called again, it gives the
   * same. Error: `usage.invalid` for a sandbox of no task.
   */
  grade(options?: RemoteCallOptions): Promise<AttemptResult>;
  /** Works like `close`, but it is an error, `serve.unknown`, if the service has removed the sandbox already. */
  delete(options?: RemoteCallOptions): Promise<void>;
}
