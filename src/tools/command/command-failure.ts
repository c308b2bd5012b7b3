import { constants } from "node:os";
import { isBrigError } from "../../errors.js";
import { describeOsError, type OsError, osErrorOf } from "../os-error.js";
import type { ToolExit, ToolProcess } from "../tool-sandbox.js";
import { shellQuote } from "./shell-quote.js";

/** What Rust calls the errors that the start of a program can end with, as models have read them. */
const errorKinds: Readonly<Record<string, string>> = {
  ENOENT: "NotFound",
  E2BIG: "ArgumentListTooLong",
  ENOEXEC: "Uncategorized",
  EAGAIN: "WouldBlock",
  ENOMEM: "OutOfMemory",
  EACCES: "PermissionDenied",
  ENOTDIR: "NotADirectory",
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
    treeEnded: false,
    durationMs: 0,
    usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
    startFailure: error.message,
  };
}

/** A start that failed, as `shell` and `shell_command` report it. */
export function startError(reason: string, exitCode: number): string {
  const known = systemError(reason, exitCode);
  if (known === undefined) return `execution error: ${reason}`;
  const { number, kind, text } = known;
  return `execution error: Io(Os { code: ${number}, kind: ${kind}, message: ${JSON.stringify(text)} })\n${reason}`;
}

/** A start that failed, as `exec_command` reports it. */
export function sessionStartError(argv: readonly string[], reason: string, exitCode: number): string {
  const known = systemError(reason, exitCode);
  const message = known === undefined ? reason : describeOsError(known);
  const text = `exec_command failed for \`${shellQuote(argv)}\`: CreateProcess { message: ${JSON.stringify(message)} }`;
  return known === undefined ? text : `${text}\n${reason}`;
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

function systemError(reason: string, exitCode: number): (OsError & { kind: string }) | undefined {
  const name = errorName(reason, exitCode);
  const error = name === undefined ? undefined : osErrorOf(name);
  const kind = name === undefined ? undefined : errorKinds[name];
  return error === undefined || kind === undefined ? undefined : { ...error, kind };
}
