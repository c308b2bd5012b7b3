import type { AttemptResult } from "../../../batch/index.js";
import type {
  CommandOptions,
  DiffOptions,
  DirectoryEntry,
  PortableAccount,
  PortableFiles,
  PortableProcess,
  PortableSandbox,
  PortableSpawnOptions,
  PortableWorkspace,
  WorkspaceDiff,
} from "../../../sandbox/index.js";
import type { RemoteEgress, RemoteProof, RemoteReceipt } from "../wire/account-schemas.js";
import type { RemoteProcessRecord } from "../wire/process-schemas.js";
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
  /** Replaces the file whole. With `parents`, makes the directories above it. */
  write(
    path: string,
    data: string | Uint8Array,
    options?: RemoteCallOptions & { mode?: number | undefined; parents?: boolean | undefined },
  ): Promise<void>;
  /** With `parents`, makes the directories above it. */
  writeStream(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options?: RemoteCallOptions & { mode?: number | undefined; parents?: boolean | undefined },
  ): Promise<void>;
  /** A file or a directory with everything in it, as a tar archive below its own name. */
  readArchive(path: string, options?: RemoteCallOptions): AsyncIterable<Buffer>;
  /** Puts what is in a tar archive into a directory. Nothing is written through a link that is in the directory or the archive. */
  writeArchive(path: string, archive: AsyncIterable<Uint8Array>, options?: RemoteCallOptions): Promise<void>;
  /** At most 10 000 entries; `truncated` says that there are more. */
  list(path: string, options?: RemoteCallOptions): Promise<{ entries: DirectoryEntry[]; truncated: boolean }>;
}

/**
 * A process of a sandbox of a service, which runs on if its client goes. It never waits for its output to be read: the service keeps
 * the latest 16 MiB. One whose sandbox ends counts as killed. Errors of `exit`: `serve.unknown` if the sandbox was removed some time ago,
 * `serve.unreachable`.
 */
export interface RemoteProcess extends PortableProcess {
  readonly id: string;
  /** How many bytes of its output have been read. Whoever goes on with it passes this as `after`. */
  readonly readBytes: number;
  /** How many bytes of these are missing, because they were read too late. */
  readonly lostBytes: number;
  /** Stops reading, which ends the streams. The process runs on, and `exit` rejects with `aborted`. */
  detach(): void;
}

/** A stored workspace of a client of a service, for `createSandbox({ snapshot: id })`. */
export interface RemoteSnapshot {
  readonly id: string;
  readonly name: string;
  /** Error: `snapshot.unknown` if it is removed already. */
  remove(options?: RemoteCallOptions): Promise<void>;
}

/** What to tell of the changes in a workspace. Options that `Sandbox.diff` has as well mean the same. */
export type RemoteDiffOptions = RemoteCallOptions &
  Pick<DiffOptions, "patches" | "maxFileBytes" | "maxPatchBytes">;

/** A sandbox of a service. Of a command's output it keeps 1 MiB each unless `maxOutputBytes` says otherwise, which may be 8 MiB. */
export interface RemoteSandbox extends PortableSandbox, PortableWorkspace, PortableAccount {
  /** As the service described it when it was created or asked for. */
  readonly record: RemoteSandboxRecord;
  readonly files: RemoteFiles;
  /** Runs a program and passes its output on as it comes, however much it is. An abort ends the command. */
  stream(argv: readonly string[], options?: RemoteStreamOptions): Promise<RemoteExit>;
  /** Starts a program that runs on by itself. An abort of the signal ends it, the end of the client does not. */
  spawn(argv: readonly string[], options?: PortableSpawnOptions): Promise<RemoteProcess>;
  /** The processes that were started with `spawn`, by any client with the same token, and the latest of those that have ended. */
  processes(options?: RemoteCallOptions): Promise<RemoteProcessRecord[]>;
  /**
   * One of these processes, with its output from `after` on; default: all that is kept. What its terminal prints comes on `stdout`.
   * Error: `serve.unknown`.
   */
  process(id: string, options?: RemoteCallOptions & { after?: number | undefined }): Promise<RemoteProcess>;
  /**
   * Lets it expire so long from now, later or earlier than before, but never after the service's longest life. Gives the record
   * as it is now. Error: `sandbox.gone`.
   */
  extend(lifeMs: number, options?: RemoteCallOptions): Promise<RemoteSandboxRecord>;
  /**
   * Replaces the hosts that it may reach: `none` or `allowlist:HOST,…`. Gives the record as it is now. Errors: `policy.invalid` if the service
   * gives no network; `usage.invalid`; `policy.not-enforced` if its network cannot change.
   */
  setNetwork(
    network: "none" | `allowlist:${string}`,
    options?: RemoteCallOptions,
  ): Promise<RemoteSandboxRecord>;
  /**
   * Starts another sandbox like it on a copy of its workspace, without its processes; with `count` so many, all or none. Error:
   * `usage.invalid` for a sandbox without a workspace.
   */
  fork(options: RemoteCallOptions & { count: number }): Promise<RemoteSandbox[]>;
  fork(options?: RemoteCallOptions): Promise<RemoteSandbox>;
  /** Stores the files of the workspace, until they are removed. Error: `usage.invalid` for a sandbox without a workspace. */
  snapshot(options?: RemoteCallOptions & { name?: string | undefined }): Promise<RemoteSnapshot>;
  /** What is in the workspace that was empty at first. Error: `usage.invalid` for a sandbox without a workspace. */
  diff(options?: RemoteDiffOptions): Promise<WorkspaceDiff>;
  /** What the kernel said of its policy before the first command. */
  proof(options?: RemoteCallOptions): Promise<RemoteProof>;
  /**
   * What its programs tried to reach so far. With the network `learn`, also the shortest list of hosts that allows what they have
   * reached, for `createSandbox({ network })`.
   */
  egress(options?: RemoteCallOptions): Promise<RemoteEgress>;
  /** What it has left, once it was removed. Errors: `usage.invalid` while it is there; `serve.unknown` if that was long ago. */
  receipt(options?: RemoteCallOptions): Promise<RemoteReceipt>;
  /**
   * Ends everything in the sandbox of a task, and grades in a fresh container what is left. Called again, it gives the
   * same. Error: `usage.invalid` for a sandbox of no task.
   */
  grade(options?: RemoteCallOptions): Promise<AttemptResult>;
  /** Works like `close`, but it is an error, `serve.unknown`, if the service has removed the sandbox already. */
  delete(options?: RemoteCallOptions): Promise<void>;
}
