import { BrigError } from "../../errors.js";
import { renderOutput } from "../../output/captured-output.js";
import { OutputCapture } from "../../output/output-capture.js";
import { endOf, refusedStart } from "../command/command-failure.js";
import { eachChunk } from "../command/each-chunk.js";
import type { CommandEnvironment, SandboxAccess } from "../tool-needs.js";
import type { ToolExit, ToolSandbox, ToolStartFailure } from "../tool-sandbox.js";

/** The toolbox's, which is the same whatever the image and cannot be replaced from inside; else the one on PATH. */
const programs = ["/.brig/rg", "rg"];
const TIMEOUT_SECONDS = 30;
const ERROR_LIMIT_BYTES = 64 * 1024;

export interface RipgrepNeeds extends SandboxAccess, CommandEnvironment {}

export interface RipgrepCall {
  args: readonly string[];
  cwd: string;
  signal?: AbortSignal | undefined;
  onOutput(chunk: Uint8Array): void;
}

/**
 * Runs ripgrep in the sandbox to its end, which finding nothing is too. Files and directories that may not be read are passed over.
 * Error: `tool.failed`, with what ripgrep says.
 */
export async function runRipgrep(needs: RipgrepNeeds, call: RipgrepCall): Promise<void> {
  const sandbox = await needs.sandbox();
  let startFailure: ToolStartFailure | null = null;
  for (const program of programs) {
    const { exit, stderr } = await runProgram({ sandbox, env: needs.environment }, program, call);
    call.signal?.throwIfAborted();
    startFailure = exit.startFailure;
    if (startFailure === null) return requireSuccess(exit, stderr);
  }
  throw failure(`failed to launch rg: ${startFailure?.message}. Ensure ripgrep is installed and on PATH.`);
}

/** Under --no-messages an unreadable file makes the exit code 2 as a mistake in the call does, but only the latter has a text. */
function requireSuccess({ exitCode, timedOut }: ToolExit, stderr: string): void {
  if (timedOut) throw failure(`rg timed out after ${TIMEOUT_SECONDS} seconds`);
  const isDone = exitCode === 0 || exitCode === 1 || (exitCode === 2 && stderr === "");
  if (!isDone) throw failure(`rg failed: ${stderr}`);
}

async function runProgram(
  { sandbox, env }: { sandbox: ToolSandbox; env: Readonly<Record<string, string>> },
  program: string,
  { args, cwd, signal, onOutput }: RipgrepCall,
): Promise<{ exit: ToolExit; stderr: string }> {
  const errors = new OutputCapture(ERROR_LIMIT_BYTES);
  try {
    const process = await sandbox.spawn([program, ...args], {
      cwd,
      env,
      signal,
      stdin: "closed",
      timeoutMs: TIMEOUT_SECONDS * 1000,
    });
    const reading = Promise.all([
      eachChunk(process.stdout, onOutput),
      eachChunk(process.stderr, (chunk) => errors.push(chunk)),
    ]);
    const exit = await endOf(process, reading);
    return { exit, stderr: renderOutput(errors.take()) };
  } catch (error) {
    signal?.throwIfAborted();
    return { exit: refusedStart(error), stderr: "" };
  }
}

function failure(text: string): BrigError {
  return new BrigError(text, { code: "tool.failed" });
}
