import { AnySignal } from "../lib/time/any-signal.js";
import type { ExitStatus, Sandbox, SpawnOptions } from "../sandbox/index.js";
import type { CliContext } from "./context.js";
import { passInput, passOutput, unreadableInput } from "./streams.js";

interface PipedOptions extends Pick<SpawnOptions, "cwd" | "timeoutMs" | "env"> {
  takesInput: boolean;
}

/**
 * Runs a program without a terminal, and passes its stdout and stderr on to brig's own. Error:
 * `usage.invalid` if standard input cannot be read.
 */
export async function runOnPipes(
  sandbox: Pick<Sandbox, "spawn">,
  { argv, takesInput, ...options }: PipedOptions & { argv: readonly string[] },
  context: CliContext,
): Promise<ExitStatus> {
  const input = new AbortController();
  using ends = new AnySignal([context.signal, input.signal]);
  const program = await sandbox.spawn(argv, {
    ...options,
    stdin: takesInput ? "pipe" : "closed",
    signal: ends.signal,
  });
  if (program.stdin)
    passInput(context.stdin, program.stdin).catch((cause) => input.abort(unreadableInput(cause)));
  const [status] = await Promise.all([
    program.exit,
    passOutput(program.stdout, context.stdout, context),
    program.stderr && passOutput(program.stderr, context.essentialStderr, context),
  ]);
  return status;
}
