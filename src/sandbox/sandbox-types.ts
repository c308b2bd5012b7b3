import type { CommandEnd } from "./output/command-end.js";
import type {
  CommandOptions,
  CommandResult,
  FileType,
  PortableFiles,
  PortableProcess,
  PortableSpawnOptions,
  PortableStat,
} from "./portable-sandbox.js";

/** How a command in a sandbox ended. */
export type ExitStatus = CommandEnd;

/** Options for running one command. */
export interface ExecOptions extends CommandOptions {
  /** Called with each piece of output. The command waits while a returned promise is pending. */
  onStdout?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  onStderr?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
  /** Default: 8 MiB. */
  maxOutputBytes?: number | undefined;
  /** The id of a model's call, for example: `onEgress` names it with each attempt of this command's processes. */
  callId?: string | undefined;
}

/** The outcome of a command in a sandbox of this process. */
export interface ExecResult<Output = string>
  extends CommandResult<Output>,
    Omit<CommandEnd, "startFailure" | "signal"> {
  signal: NodeJS.Signals | null;
}

/** Options for starting a process. An option that `ExecOptions` has as well means the same. */
export interface SpawnOptions extends PortableSpawnOptions {
  /** The id of a model's call, for example: `onEgress` names it with each attempt of this command's processes. */
  callId?: string | undefined;
}

/** A running process in the sandbox. */
export interface SandboxProcess extends PortableProcess {
  /** Resolves when the process has ended and its output is complete, at most 250 ms after the process. */
  readonly exit: Promise<CommandEnd>;
}

/** Options for making a port of the sandbox reachable. */
export interface ForwardOptions {
  /** The port of this machine's 127.0.0.1. Default: 0, which is any that is free. */
  hostPort?: number | undefined;
  /** The time that a connection waits for a server in the sandbox that does not listen yet. Default: 5000. */
  waitForServerMs?: number | undefined;
}

/** A port of the sandbox that is reachable from this machine, until it or the sandbox is closed. */
export interface ForwardedPort extends AsyncDisposable {
  /** The port in the sandbox. */
  readonly sandboxPort: number;
  /** The port of this machine's 127.0.0.1. */
  readonly port: number;
  /** The address of the port for a server that speaks HTTP. */
  readonly url: string;
  /** Ends the connections that are open, too. */
  close(): Promise<void>;
}

/** The metadata of a file of a sandbox of this process. */
export interface FileStat extends PortableStat {
  /** Device and inode, which tell whether two names mean the same file. */
  dev: bigint;
  ino: bigint;
}

/** An entry of a directory. */
export interface DirectoryEntry {
  /** The name as bytes, since a name need not be UTF-8. */
  nameBytes: Uint8Array;
  /** The name decoded; invalid bytes are replaced. */
  name: string;
  type: FileType;
}

/** Options for resolving paths. */
export interface PathOptions {
  /**
   * Fail with `file.symlink` when a name in the path is a symbolic link, even one that is put there
   * meanwhile. The last name may be a link for `rename` and `remove`. Default: links are followed.
   */
  refuseSymlinks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** The part of a file to read, and a limit of its size. */
export interface ReadOptions extends PathOptions {
  /** Default: 0. */
  offsetBytes?: number | undefined;
  /** The number of bytes to read; the file may end earlier. Default: to the end of the file. */
  lengthBytes?: number | undefined;
  /** Refuse a larger file with `file.too-large`. Default: 256 MiB, and no limit with an explicit length. */
  maxBytes?: number | undefined;
}

/** A part of a file that may be sparse. */
export interface FilePart {
  /** The number of zeros before the data that the file does not store. */
  holeBytes: number;
  data: Buffer;
}

/** One of several files to write. */
export interface FileWrite {
  path: string;
  data: string | Uint8Array;
  /** The mode of a new file. Default: 0o644. */
  mode?: number | undefined;
}

/** The outcome of several writes. */
export interface WritesDone {
  /** The number of files written, counted from the first. */
  written: number;
  /** Why the next file was not written: a BrigError, or the reason of an abort; else null. */
  failure: unknown;
}

/** Options for listing a directory. */
export interface ListOptions {
  /** Called with some entries at a time, for directories of any size. The listing waits while a returned promise is pending. The result is then empty. */
  onEntries?: ((entries: DirectoryEntry[]) => unknown) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Files as the sandbox's own user sees them. The kernel resolves every path inside the container, never on
 * the host. Paths are absolute. Errors are BrigErrors with `file.*` codes; `errno` is the Linux name of the
 * reason.
 */
export interface SandboxFiles extends PortableFiles {
  /** Reads a regular file. Refuses a FIFO, device, socket or directory at once. */
  read(path: string, options?: ReadOptions): Promise<Buffer>;
  /** Works like `read` for files of any size: gives pieces, at the pace of whoever reads them. Breaking off ends it. */
  readStream(path: string, options?: Omit<ReadOptions, "maxBytes">): AsyncIterable<Buffer>;
  /** Works like `read` of a part, but if that begins in a hole of a sparse file, returns the data after the hole. */
  readPastHole(
    path: string,
    options: { offsetBytes: number; lengthBytes: number; signal?: AbortSignal | undefined },
  ): Promise<FilePart>;
  /** Replaces the file atomically (temporary file and rename), keeps its mode, follows a link. */
  write(path: string, data: string | Uint8Array, options?: PathOptions & { mode?: number }): Promise<void>;
  /** Works like `write` for files of any size. If the content fails, the file stays as it was. */
  writeStream(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options?: PathOptions & { mode?: number | undefined },
  ): Promise<void>;
  /** Writes files in order, as `write` does, up to the first failure. Faster than a call for each. */
  writeEach(files: readonly FileWrite[], options?: PathOptions): Promise<WritesDone>;
  stat(path: string, options?: PathOptions & { followSymlinks?: boolean | undefined }): Promise<FileStat>;
  /** Lists a directory, unsorted, without `.` and `..`. The path may be bytes: it need not be UTF-8. */
  list(path: string | Uint8Array, options?: ListOptions): Promise<DirectoryEntry[]>;
  /** Makes a directory; with `recursive`, works like `mkdir -p`. */
  mkdir(
    path: string,
    options?: PathOptions & { recursive?: boolean | undefined; mode?: number | undefined },
  ): Promise<void>;
  /** Replaces an existing file, as rename(2) does. */
  rename(from: string, to: string, options?: PathOptions): Promise<void>;
  /** Removes what is at the path, with `recursive` a whole tree. A missing path is an error unless `force`. */
  remove(path: string, options?: PathOptions & { recursive?: boolean; force?: boolean }): Promise<void>;
}
