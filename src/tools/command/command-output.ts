import { constants } from "node:os";
import { shellQuote } from "../../lib/shell-quote.js";
import type {
  CallCause,
  CapturedOutput,
  CommandEnd,
  StartFailure,
  TruncationPolicy,
} from "../../sandbox/index.js";
import {
  captured,
  causeSentences,
  countLines,
  truncateOutput,
  truncateWithLineCount,
} from "../../sandbox/index.js";
import type { SandboxAccess } from "../define-tool.js";
import { describeOsError, type OsError, osErrorOf } from "../os-error.js";
import type { ToolCallOptions } from "../tool.js";

/** Added to the output of a command outside the sandbox that left processes running. */
export const TREE_ENDED =
  "\n[what it left running was ended: outside the sandbox nothing goes on after its command]\n";

/** Added to the output of a command that failed, if it is known why. May be empty. */
export function causeNotice(causes: readonly CallCause[] = []): string {
  const sentences = causeSentences(causes);
  return sentences.length === 0 ? "" : `\n[${sentences.join(";\n")}]\n`;
}

/** A command that has ended, and its output. */
export interface EndedCommand {
  end: CommandEnd;
  output: CapturedOutput;
}

/** The output of `shell`. */
export function structuredOutput(command: EndedCommand, policy: TruncationPolicy): string {
  return jsonOutput(command.end, truncateWithLineCount(withTimeout(command), policy));
}

/** The output of `shell_command`. */
export function freeformOutput(command: EndedCommand, policy: TruncationPolicy): string {
  const whole = withTimeout(command);
  const text = truncateOutput(whole, policy);
  const lines = countLines(whole);
  const isCut = lines !== countLines(captured(text));
  return sectionedOutput(command.end, text, isCut ? [`Total output lines: ${lines}`] : []);
}

type Ended = Pick<CommandEnd, "exitCode" | "durationMs">;

/** The duration always has one decimal, as in Codex's output. */
export function jsonOutput({ exitCode, durationMs }: Ended, text: string): string {
  const seconds = roundedSeconds(durationMs).toFixed(1);
  return `{"output":${JSON.stringify(text)},"metadata":{"exit_code":${exitCode},"duration_seconds":${seconds}}}`;
}

export function sectionedOutput(
  { exitCode, durationMs }: Ended,
  text: string,
  notes: readonly string[] = [],
): string {
  const seconds = roundedSeconds(durationMs);
  return [`Exit code: ${exitCode}`, `Wall time: ${seconds} seconds`, ...notes, "Output:", text].join("\n");
}

export function withTimeout({ end, output }: EndedCommand): CapturedOutput {
  if (!end.timedOut) return output;
  return captured(`command timed out after ${Math.trunc(end.durationMs)} milliseconds\n`, output);
}

function roundedSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

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
export function startError(failure: StartFailure): string {
  const known = systemError(failure);
  if (known === undefined) return `execution error: ${failure.message}`;
  const { number, kind, text } = known;
  return `execution error: Io(Os { code: ${number}, kind: ${kind}, message: ${JSON.stringify(text)} })\n${failure.message}`;
}

/** A failed start as `exec_command` reports it. */
export function sessionStartError(argv: readonly string[], failure: StartFailure): string {
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
function systemError({ stage, errno }: StartFailure): (OsError & { kind: string }) | undefined {
  if (errno === undefined || stage === "fork" || stage === "request") return undefined;
  // Like a shell, report a program whose path leads through a file as not found.
  const name = stage === "exec" && errno === "ENOTDIR" ? "ENOENT" : errno;
  const error = osErrorOf(name);
  const kind = errorKinds[name];
  return error === undefined || kind === undefined ? undefined : { ...error, kind };
}

interface FailedCommand {
  argv: readonly string[];
  exitCode: number;
  startFailure?: StartFailure | null | undefined;
  output: string;
}

/** The exit code of a shell that does not find a program. */
const NOT_FOUND = 127;
/** Output can contain any name, so the number of programs that are reported is limited. */
const MAX_REPORTED = 10;
/** Only the end of an output is searched, where a shell's error message is. */
const SEARCHED_CHARS = 4096;

const programName = String.raw`[\w.+-]{1,64}`;
const complaints: readonly RegExp[] = [
  new RegExp(`(?:^|: )(${programName}): (?:command )?not found$`, "m"),
  new RegExp(`: command not found: (${programName})$`, "m"),
  new RegExp(`^(?:/usr/bin/)?env: [‘'"]?(${programName})[’'"]?: No such file or directory$`, "m"),
];

export interface MissingProgramNeeds extends SandboxAccess {
  readonly missingPrograms: MissingPrograms;
}

export async function adviseOfMissingProgram(
  needs: MissingProgramNeeds,
  command: FailedCommand,
  call: ToolCallOptions,
): Promise<void> {
  if (command.exitCode !== NOT_FOUND) return;
  const { image } = await needs.sandbox();
  const text = needs.missingPrograms.advice(command, image);
  if (text !== null) call.onActivity?.({ kind: "advice", text });
}

/** The programs that the commands of a session did not find. Each is reported once. */
export class MissingPrograms {
  readonly #reported = new Set<string>();

  /** A note for the model and the user, or null. */
  advice(command: FailedCommand, image: string | undefined): string | null {
    const program = command.exitCode === NOT_FOUND ? missingProgram(command) : null;
    if (program === null || this.#reported.has(program) || this.#reported.size >= MAX_REPORTED) return null;
    this.#reported.add(program);
    const place = image === undefined ? "the sandbox's image" : `the sandbox's image ${image}`;
    return `${ADVICE_START}${program} was not found in ${place}. The user can choose another image with --container-image.`;
  }
}

/** Compaction recognises the advice by this beginning. */
export const ADVICE_START = "Warning: the program ";

function missingProgram({ argv: [program = ""], startFailure, output }: FailedCommand): string | null {
  if (startFailure) {
    const isBareName = new RegExp(`^${programName}$`).test(program);
    return isBareName && startFailure.stage === "exec" ? program : null;
  }
  const end = output.slice(-SEARCHED_CHARS).replaceAll("\r", "");
  for (const complaint of complaints) {
    const found = complaint.exec(end)?.[1];
    if (found !== undefined) return found;
  }
  return null;
}
