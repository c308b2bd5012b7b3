import type { Readable, Writable } from "node:stream";
import type { Command } from "commander";
import type { Environment } from "../lib/env.js";

/** Standard input. `isTTY` and `setRawMode` exist when it is a terminal. */
export type InputStream = Readable & { isTTY?: boolean; setRawMode?: (isRaw: boolean) => unknown };

/** Standard output or error. A terminal also has a size and emits `resize`. */
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

export interface Interruption {
  /** 128 plus the number of the signal. */
  exitStatus: number;
  /** Print no message, because the reader of stdout has gone away. */
  isQuiet: boolean;
}

/** What the options of every command say: `--quiet` and `--color`. */
export interface OutputChoice {
  isQuiet: boolean;
  color: "auto" | "always" | "never";
}

/** Everything that a command may use of its process. Only the programs' entry files use the global `process`. */
export interface CliContext {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  /** For progress and remarks: with `--quiet` nothing of it is seen. */
  readonly stderr: OutputStream;
  /** Standard error for what is always seen: errors, questions, and what the commands of a sandbox print there. */
  readonly essentialStderr: OutputStream;
  /** The absolute path of the directory that brig was started in. */
  readonly cwd: string;
  readonly environment: Environment;
  /** Aborted by ctrl-C, ctrl-\, SIGTERM, SIGHUP or a closed stdout. Pass it to everything that waits. */
  readonly signal: AbortSignal;
  /** The interruption that aborted the signal; null if there was none. */
  interruption(): Interruption | null;
  /**
   * Until it is disposed of, the first ctrl-C or SIGTERM calls `drain` and aborts nothing; the next one does what
   * the first does otherwise.
   */
  drainFirst(drain: (interruption: Interruption) => void): Disposable;
  /** Until it is disposed of, `restore` is called as the program ends, also if it crashes. */
  onExit(restore: () => void): Disposable;
  /** `finish` runs once the command has ended, before the program does. It resolves to a line for the user, or to null. */
  beforeEnd(finish: () => Promise<string | null>): void;
  /** Does what ctrl-C does. For raw mode, in which the terminal sends no signal. */
  interrupt(): void;
  /**
   * Stops the whole job, as ctrl-Z does outside raw mode, and returns once it is continued. Returns
   * immediately if there is no shell that could continue it.
   */
  suspend(): void;
  /** Obeys the options of every command, as soon as the command line has been read. */
  chooseOutput(choice: OutputChoice): void;
  /** The exit status when the program ends without an error. Default 0. */
  setExitStatus(status: number): void;
}

/**
 * Adds arguments, options and the action to `command`. It runs before the arguments are parsed, so large
 * modules are imported inside the action. An action that fails throws a BrigError.
 */
export type DefineCommand = (command: Command, context: CliContext) => void;
