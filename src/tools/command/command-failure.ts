import { constants } from "node:os";
import { describeOsError, type OsError, osErrorOf } from "../os-error.js";
import type { ToolStartFailure } from "../tool-sandbox.js";
import { shellQuote } from "./shell-quote.js";

/** Rust's names of the errors with which the start of a program can fail. Models know them from Codex. */
const errorKinds: Readonly<Record<string, string>> = {
  ENOENT: "NotFound",
  ENOEXEC: "Uncategorized",
  EAGAIN: "WouldBlock",
  ENOMEM: "OutOfMemory",
  EACCES: "PermissionDenied",
  ENOTDIR: "NotADirectory",
};

/** A failed start as `shell` and `shell_command` report it. */
export function startError(failure: ToolStartFailure): string {
  const known = systemError(failure);
  if (known === undefined) return `execution error: ${failure.message}`;
  const { number, kind, text } = known;
  return `execution error: Io(Os { code: ${number}, kind: ${kind}, message: ${JSON.stringify(text)} })\n${failure.message}`;
}

/** A failed start as `exec_command` reports it. */
export function sessionStartError(argv: readonly string[], failure: ToolStartFailure): string {
  const known = systemError(failure);
  return known === undefined
    ? createProcessError(argv, failure.message)
    : `${createProcessError(argv, describeOsError(known))}\n${failure.message}`;
}

/** A refused command as `exec_command` reports it. */
export function sessionRejection(argv: readonly string[], reason: string): string {
  return createProcessError(argv, `Rejected(${JSON.stringify(reason)})`);
}

function createProcessError(argv: readonly string[], message: string): string {
  return `exec_command failed for \`${shellQuote(argv)}\`: CreateProcess { message: ${JSON.stringify(message)} }`;
}

/** A command that a signal ended, with its output until then. */
export function signalError(signal: NodeJS.Signals, output: string): string {
  const error = `execution error: Sandbox(Signal(${constants.signals[signal]}))`;
  return output === "" ? error : `${error}\n${output}`;
}

/** Undefined for a limit of the sandbox and a refused request, whose own messages say enough. */
function systemError({ stage, errno }: ToolStartFailure): (OsError & { kind: string }) | undefined {
  if (errno === undefined || stage === "fork" || stage === "request") return undefined;
  // Like a shell, report a program whose path leads through a file as not found.
  const name = stage === "exec" && errno === "ENOTDIR" ? "ENOENT" : errno;
  const error = osErrorOf(name);
  const kind = errorKinds[name];
  return error === undefined || kind === undefined ? undefined : { ...error, kind };
}
