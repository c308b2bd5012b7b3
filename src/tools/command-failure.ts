import { constants } from "node:os";
import { isBrigError } from "../errors.js";
import type { ToolExit, ToolProcess } from "./sandbox.js";
import { shellQuote } from "./shell-quote.js";

interface SystemError {
  number: number;
  kind: string;
  message: string;
}

/** The system errors a program start can end with, in the words models know. */
const systemErrors: Record<string, SystemError> = {
  ENOENT: { number: 2, kind: "NotFound", message: "No such file or directory" },
  E2BIG: { number: 7, kind: "ArgumentListTooLong", message: "Argument list too long" },
  ENOEXEC: { number: 8, kind: "Uncategorized", message: "Exec format error" },
  EAGAIN: { number: 11, kind: "WouldBlock", message: "Resource temporarily unavailable" },
  ENOMEM: { number: 12, kind: "OutOfMemory", message: "Cannot allocate memory" },
  EACCES: { number: 13, kind: "PermissionDenied", message: "Permission denied" },
  ENOTDIR: { number: 20, kind: "NotADirectory", message: "Not a directory" },
};

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

function errorName(reason: string, exitCode: number): string | undefined {
  const named = /: (E[A-Z0-9]+)$/.exec(reason)?.[1];
  if (named !== undefined) return named;
  if (exitCode === NOT_FOUND) return "ENOENT";
  return reason.endsWith("permission denied") ? "EACCES" : undefined;
}

/**
 * Resolves when a process has ended and all it printed was read. A request that the sandbox refused, such as one with a
 * working directory that does not exist, is a start that failed.
 */
export async function endOf(process: ToolProcess, reading: Promise<unknown>): Promise<ToolExit> {
  const [exit, read] = await Promise.allSettled([process.exit, reading]);
  if (exit.status === "rejected") return refusedStart(exit.reason);
  if (read.status === "rejected") throw read.reason;
  return exit.value;
}

/** The refusal of a request as the end of a process; any other error is thrown on. */
export function refusedStart(error: unknown): ToolExit {
  if (!isBrigError(error, "exec.bad-cwd") && !isBrigError(error, "exec.invalid")) throw error;
  return {
    exitCode: error.code === "exec.bad-cwd" ? NOT_FOUND : NOT_EXECUTABLE,
    signal: null,
    timedOut: false,
    outOfMemory: false,
    durationMs: 0,
    usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
    startFailure: error.message,
  };
}

/** A start that failed, as `shell` and `shell_command` report it. */
export function startError(reason: string, exitCode: number): string {
  const known = systemError(reason, exitCode);
  if (known === undefined) return `execution error: ${reason}`;
  const { number, kind, message } = known;
  return `execution error: Io(Os { code: ${number}, kind: ${kind}, message: ${JSON.stringify(message)} })\n${reason}`;
}

/** A start that failed, as `exec_command` reports it. */
export function sessionStartError(argv: readonly string[], reason: string, exitCode: number): string {
  const known = systemError(reason, exitCode);
  const message = known === undefined ? reason : `${known.message} (os error ${known.number})`;
  const text = `exec_command failed for \`${shellQuote(argv)}\`: CreateProcess { message: ${JSON.stringify(message)} }`;
  return known === undefined ? text : `${text}\n${reason}`;
}

/** A command that a signal ended, with what it had printed. */
export function signalError(signal: NodeJS.Signals, output: string): string {
  const error = `execution error: Sandbox(Signal(${constants.signals[signal]}))`;
  return output === "" ? error : `${error}\n${output}`;
}

function systemError(reason: string, exitCode: number): SystemError | undefined {
  const name = errorName(reason, exitCode);
  return name === undefined ? undefined : systemErrors[name];
}
