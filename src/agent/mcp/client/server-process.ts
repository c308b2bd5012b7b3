import type { Readable, Writable } from "node:stream";
import type { ServerCommand } from "./server-settings.js";

/**
 * Starts the program of a stdio server. An abort ends what has been started, and rejects with the signal's
 * reason.
 */
export type LaunchServer = (
  name: string,
  command: ServerCommand,
  options: { signal: AbortSignal },
) => Promise<ServerProcess>;

/** A running server, wherever it runs. */
export interface ServerProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended. Never rejects. */
  readonly exited: Promise<ServerExit>;
  /** Ends the process and everything it started; resolves when it is gone. May be called more than once. */
  kill(): Promise<void>;
}

export interface ServerExit {
  exitCode: number | null;
  signal: string | null;
  /** Why it ended, if the launcher knows more, such as "its container was removed". */
  reason?: string | undefined;
}

/** Where the program of a stdio server runs. */
export type ServerPlace =
  /** A container of its own. Without an image it has that of the session. */
  | { kind: "own"; image: string | null; network: "none" | "full" }
  /** The sandbox in which the commands of the session run. */
  | { kind: "session" }
  /** This machine. Nothing contains it. */
  | { kind: "host" };
