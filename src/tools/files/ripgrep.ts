import { BrigError } from "../../errors.js";
import type { CommandEnd, StartFailure } from "../../sandbox/index.js";
import { OutputCapture, renderOutput } from "../../sandbox/index.js";
import { runProcess } from "../command/run-process.js";
import type { CommandEnvironment, SandboxAccess } from "../define-tool.js";
import { withFileErrors } from "../os-error.js";
import type { ToolFileStat } from "../tool-sandbox.js";

/** First the one of brig's toolbox, which does not depend on the image and cannot be replaced from inside. */
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

/** Skips what it may not read. Throws `tool.failed` with ripgrep's error message. No match is no failure. */
export async function runRipgrep(
  needs: RipgrepNeeds,
  { args, onOutput, ...options }: RipgrepCall,
): Promise<void> {
  const sandbox = await needs.sandbox();
  let startFailure: StartFailure | null = null;
  for (const program of programs) {
    const errors = new OutputCapture(ERROR_LIMIT_BYTES);
    const exit = await runProcess(
      sandbox,
      {
        ...options,
        argv: [program, ...args],
        env: needs.environment,
        timeoutMs: TIMEOUT_SECONDS * 1000,
      },
      { stdout: onOutput, stderr: (chunk) => errors.push(chunk) },
    );
    startFailure = exit.startFailure;
    if (startFailure === null) return requireSuccess(exit, renderOutput(errors.take()));
  }
  throw failed(`failed to launch rg: ${startFailure?.message}. Ensure ripgrep is installed and on PATH.`);
}

/** With --no-messages, exit code 2 means an unreadable file if stderr is empty, else a wrong call. */
function requireSuccess({ exitCode, timedOut }: CommandEnd, stderr: string): void {
  if (timedOut) throw failed(`rg timed out after ${TIMEOUT_SECONDS} seconds`);
  if (exitCode > 2 || (exitCode === 2 && stderr !== "")) throw failed(`rg failed: ${stderr}`);
}

/** Fails with Codex's message if the path is missing, before ripgrep reports that in its own words. */
export async function statSearched(
  needs: SandboxAccess,
  path: string,
  signal: AbortSignal | undefined,
): Promise<ToolFileStat> {
  const { files } = await needs.sandbox();
  return await withFileErrors(() => files.stat(path, { signal }), `unable to access \`${path}\``, {
    path,
    signal,
  });
}

function failed(message: string): BrigError {
  return new BrigError(message, { code: "tool.failed" });
}
