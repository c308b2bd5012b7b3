import { z } from "zod";
import type { CapturedOutput, CommandEnd } from "../../sandbox/index.js";
import { captured, OutputCapture, renderOutput, total } from "../../sandbox/index.js";
import {
  type ArgumentsOf,
  type CommandEnvironment,
  defineTool,
  type SandboxAccess,
  type WorkingDirectory,
  workdirOf,
} from "../define-tool.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import { eachChunk } from "./run-process.js";

/** The result of `exec`; `content` is the aggregated output. */
export interface ExecToolResult extends ToolOutput {
  /** 124 on a timeout, 127 or 126 if the program could not be started. */
  exitCode: number;
  stdout: ExecText;
  stderr: ExecText;
  /** stdout and stderr in the order of arrival. */
  aggregatedOutput: ExecText;
  durationMs: number;
  timedOut: boolean;
}

/** The output of a command, at most 1 MiB of it. */
interface ExecText {
  text: string;
  /** Set if the middle was omitted: the number of lines before the omission. The text marks it, too. */
  truncatedAfterLines?: number;
}

const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

const parameters = z.object({
  command: z.array(z.string()).min(1).describe("The program and its arguments; no shell is involved."),
  cwd: z.string().optional().describe("Directory to run in. Default: the session's."),
  env: z.record(z.string(), z.string()).default({}).describe("Variables to set for it."),
  timeoutMs: z
    .int()
    .positive()
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe("Its whole process tree is killed after so many milliseconds. Default: never."),
});

interface ExecNeeds extends SandboxAccess, CommandEnvironment, WorkingDirectory {}

/** For programs: runs a command to its end. Throws only if the request is invalid or the sandbox fails. */
export function execTool(needs: ExecNeeds): Tool<ExecToolResult, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "exec",
    description: "Runs a command and returns its outputs and exit code.",
    parameters,
    supportsParallel: false,
    run: (args, call) => exec(needs, call, args),
  });
}

async function exec(
  needs: ExecNeeds,
  { signal, origin }: ToolCallOptions,
  { command, cwd, env, timeoutMs }: z.output<typeof parameters>,
): Promise<ExecToolResult> {
  const captures = { stdout: new OutputCapture(), stderr: new OutputCapture(), both: new OutputCapture() };
  const into = (own: OutputCapture) => (chunk: Uint8Array) => {
    own.push(chunk);
    captures.both.push(chunk);
  };
  const sandbox = await needs.sandbox();
  const process = await sandbox.spawn(command, {
    cwd: workdirOf(needs, cwd),
    env: { ...needs.environment, ...env },
    timeoutMs,
    signal,
    stdin: "closed",
    callId: origin?.callId,
  });
  const [exit] = await Promise.all([
    process.exit,
    eachChunk(process.stdout, into(captures.stdout)),
    eachChunk(process.stderr, into(captures.stderr)),
  ]);
  signal?.throwIfAborted();
  return resultOf(exit, {
    stdout: captures.stdout.take(),
    stderr: withStartFailure(captures.stderr.take(), exit),
    both: withStartFailure(captures.both.take(), exit),
  });
}

function withStartFailure(output: CapturedOutput, { startFailure }: CommandEnd): CapturedOutput {
  return startFailure === null ? output : captured(output, `${startFailure.message}\n`);
}

function resultOf(
  { exitCode, durationMs, timedOut }: CommandEnd,
  { stdout, stderr, both }: Record<"stdout" | "stderr" | "both", CapturedOutput>,
): ExecToolResult {
  const aggregatedOutput = textOf(both);
  return {
    exitCode,
    stdout: textOf(stdout),
    stderr: textOf(stderr),
    aggregatedOutput,
    durationMs,
    timedOut,
    content: aggregatedOutput.text,
    success: exitCode === 0,
  };
}

function textOf(output: CapturedOutput): ExecText {
  const gap = output.pieces.findIndex((piece) => typeof piece !== "string");
  const text = renderOutput(output);
  if (gap === -1) return { text };
  return { text, truncatedAfterLines: total(captured(...output.pieces.slice(0, gap)), "lineFeeds") };
}
