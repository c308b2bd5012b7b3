import type { Readable, Writable } from "node:stream";
import type { Command } from "commander";
import type { Environment } from "../config/env.js";

/** Standard input; the last two are there when it is a terminal. */
export type InputStream = Readable & { isTTY?: boolean; setRawMode?: (isRaw: boolean) => unknown };

/** Standard output or error; a terminal also has a size and emits `resize`. */
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

export interface Interruption {
  /** 128 + the signal's number. */
  exitStatus: number;
  /** Nothing is said when the reader of stdout went away: it knows. */
  isQuiet: boolean;
}

/** All that a command may know of the process it runs in. Only the main.ts of each program touches `process` itself. */
export interface CliContext {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** The directory brig was started in, absolute. */
  readonly cwd: string;
  readonly environment: Environment;
  /** Aborted by ctrl-C, SIGTERM, SIGHUP or a reader of stdout that went away. Hand it to everything that waits. */
  readonly signal: AbortSignal;
  /** What aborted the signal, or null. */
  interruption(): Interruption | null;
  /** Does what ctrl-C does where the terminal makes no signal of it. */
  interrupt(): void;
  /** Stops the whole job as ctrl-Z does where the terminal takes it, and returns when it is continued; at once where no shell could. */
  suspend(): void;
  /** The exit status when the program ends without an error. Default 0. */
  setExitStatus(status: number): void;
}

/**
 * What a command file exports: adds arguments, options and the action to `command`. It runs before the arguments are
 * parsed, so heavy modules are imported inside the action. An action throws a BrigError when it fails.
 */
export type DefineCommand = (command: Command, context: CliContext) => void;
