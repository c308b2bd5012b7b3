import { constants } from "node:os";
import { isBrigError } from "../../errors.js";
import { describeOsError, type OsError, osErrorOf } from "../os-error.js";
import type { ToolExit, ToolProcess, ToolStartFailure } from "../tool-sandbox.js";
import { shellQuote } from "./shell-quote.js";

/** What Rust calls the errors that the start of a program can end with, as models have read them. */
const errorKinds: Readonly<Record<string, string>> = {
  ENOENT: "NotFound",
  ENOEXEC: "Uncategorized",
  EAGAIN: "WouldBlock",
  ENOMEM: "OutOfMemory",
  EACCES: "PermissionDenied",
  ENOTDIR: "NotADirectory",
};

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

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
  const { code, errno, message } = error;
  const isForCwd = code === "exec.bad-cwd";
  return {
    exitCode: isForCwd ? NOT_FOUND : NOT_EXECUTABLE,
    signal: null,
    timedOut: false,
    outOfMemory: false,
    treeEnded: false,
    durationMs: 0,
    usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
    startFailure: { stage: isForCwd ? "cwd" : "request", errno, message },
  };
}

/** A start that failed, as `shell` and `shell_command` report it. */
export function startError(failure: ToolStartFailure): string {
  const known = systemError(failure);
  if (known === undefined) return `execution error: ${failure.message}`;
  const { number, kind, text } = known;
  return `execution error: Io(Os { code: ${number}, kind: ${kind}, message: ${JSON.stringify(text)} })\n${failure.message}`;
}

/** A start that failed, as `exec_command` reports it. */
export function sessionStartError(argv: readonly string[], failure: ToolStartFailure): string {
  const known = systemError(failure);
  const message = known === undefined ? failure.message : describeOsError(known);
  const text = `exec_command failed for \`${shellQuote(argv)}\`: CreateProcess { message: ${JSON.stringify(message)} }`;
  return known === undefined ? text : `${text}\n${failure.message}`;
}

/** A command that was not let start, as `exec_command` reports it. */
export function sessionRejection(argv: readonly string[], reason: string): string {
  const message = JSON.stringify(`Rejected(${JSON.stringify(reason)})`);
  return `exec_command failed for \`${shellQuote(argv)}\`: CreateProcess { message: ${message} }`;
}

/** A command that a signal ended, with what it had printed. */
export function signalError(signal: NodeJS.Signals, output: string): string {
  const error = `execution error: Sandbox(Signal(${constants.signals[signal]}))`;
  return output === "" ? error : `${error}\n${output}`;
}

/** Undefined where the failure's own message says all: of a limit of the sandbox, and of a request that nothing was done for. */
function systemError({ stage, errno }: ToolStartFailure): (OsError & { kind: string }) | undefined {
  if (errno === undefined || stage === "fork" || stage === "request") return undefined;
  // A program below a file is one that is not there, as a shell says it.
  const name = stage === "exec" && errno === "ENOTDIR" ? "ENOENT" : errno;
  const error = osErrorOf(name);
  const kind = errorKinds[name];
  return error === undefined || kind === undefined ? undefined : { ...error, kind };
}
