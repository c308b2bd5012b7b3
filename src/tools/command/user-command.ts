import type { CapturedOutput, CommandEnd } from "../../sandbox/index.js";
import { captured, OutputCapture, renderOutput } from "../../sandbox/index.js";
import type { ToolCallOptions } from "../tool.js";
import type { ToolSandbox } from "../tool-sandbox.js";
import { causeNotice } from "./command-output.js";
import { runProcess } from "./run-process.js";
import { findUserShell, shellArgv } from "./shell.js";

interface UserCommand {
  script: string;
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** Variables in addition to those of the sandbox. */
  environment: Readonly<Record<string, string>>;
  allowsLoginShell: boolean;
}

/** `end` is null if the command was stopped. */
interface EndedUserCommand {
  end: CommandEnd | null;
  output: CapturedOutput;
}

/**
 * Runs a script that a person has typed, in the shell that a model's scripts run in. Nobody is asked, since the person
 * wants it and the sandbox is what it is for the model. There is no time limit; an abort stops the command.
 */
export async function runUserCommand(
  sandbox: ToolSandbox,
  { script, cwd, environment: env, allowsLoginShell: login }: UserCommand,
  { signal, origin, onActivity }: ToolCallOptions,
): Promise<EndedUserCommand> {
  const { argv, shownArgv } = shellArgv(await findUserShell(sandbox), script, { login });
  signal?.throwIfAborted();
  onActivity?.({ kind: "command-started", argv: shownArgv, cwd });
  const capture = new OutputCapture();
  const read = (chunk: Uint8Array) => {
    capture.push(chunk);
    onActivity?.({ kind: "command-output", chunk });
  };
  const options = { argv, cwd, env, signal, mergeOutput: true, callId: origin?.callId };
  let end: CommandEnd;
  try {
    end = await runProcess(sandbox, options, { stdout: read, stderr: read });
  } catch (error) {
    if (!signal?.aborted) throw error;
    return { end: null, output: capture.take() };
  }
  const { exitCode, causes, durationMs, usage, startFailure } = end;
  const output = captured(capture.take(), startFailure?.message ?? causeNotice(causes));
  onActivity?.({ kind: "command-ended", exitCode, output: renderOutput(output), causes, durationMs, usage });
  return { end, output };
}
