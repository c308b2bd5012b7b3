import { BrigError } from "../../errors.js";
import { HeadAndTail, type KeptBytes, withoutCutCharacters } from "../output/captured-output.js";
import type { CommandEnd } from "../output/command-end.js";
import type { ExecOptions, ExecResult } from "../sandbox-types.js";
import { type CommandContext, startCommand } from "./command.js";

const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024;

/** Runs one command to its end and collects its output. */
export async function exec(
  context: CommandContext,
  argv: readonly string[],
  options: ExecOptions,
): Promise<ExecResult<string | Buffer>> {
  const { cwd, env, timeoutMs, signal, endsTree, callId, stdin = "" } = options;
  const input = typeof stdin === "string" ? Buffer.from(stdin) : stdin;
  const collected = new CollectedOutput(options);
  const { command, exit, notes } = startCommand(context, argv, {
    ...{ cwd, env, timeoutMs, signal, endsTree, callId },
    hasStdin: input.length > 0,
    onOutput: (data, isStderr) => collected.take(data, isStderr),
  });
  const [status] = await Promise.all([exit, command.writeAll(input)]);
  const text = notes();
  if (text !== "" && status.startFailure === null) collected.take(Buffer.from(text), true);
  return collected.result(status);
}

function checkedBudget(maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES): number {
  if (Number.isSafeInteger(maxOutputBytes) && maxOutputBytes >= 0) return maxOutputBytes;
  throw new BrigError(`maxOutputBytes must be a whole number of bytes, not ${maxOutputBytes}`, {
    code: "exec.invalid",
  });
}

/** Keeps stdout, stderr and both in order of arrival, each within the same number of bytes. */
class CollectedOutput {
  readonly #options: ExecOptions;
  readonly #stdout: HeadAndTail;
  readonly #stderr: HeadAndTail;
  /** Undefined until a command has used both streams, which most commands do not. */
  #both: HeadAndTail | undefined;

  constructor(options: ExecOptions) {
    const maxBytes = checkedBudget(options.maxOutputBytes);
    this.#options = options;
    this.#stdout = new HeadAndTail(maxBytes);
    this.#stderr = new HeadAndTail(maxBytes);
  }

  take(data: Buffer, isStderr: boolean): unknown {
    const own = isStderr ? this.#stderr : this.#stdout;
    const other = isStderr ? this.#stdout : this.#stderr;
    if (own.totalBytes === 0 && other.totalBytes > 0) this.#both = other.clone();
    own.push(data);
    this.#both?.push(data);
    const listener = isStderr ? this.#options.onStderr : this.#options.onStdout;
    return listener?.(Buffer.from(data));
  }

  result(status: CommandEnd): ExecResult<string | Buffer> {
    if (status.startFailure !== null) this.take(Buffer.from(`brig: ${status.startFailure.message}\n`), true);
    const isStderrUsed = this.#stderr.totalBytes > 0;
    const [stdout, stderr, both] = [this.#stdout.take(), this.#stderr.take(), this.#both?.take()];
    const read = (kept: KeptBytes) =>
      this.#options.encoding === "buffer" ? Buffer.concat([kept.head, kept.tail]) : textOf(kept);
    const streams = { stdout: read(stdout), stderr: read(stderr) };
    const omittedBytes = { stdout: stdout.omittedBytes, stderr: stderr.omittedBytes };
    const { startFailure: _, ...end } = status;
    return {
      ...end,
      ...streams,
      output: both ? read(both) : isStderrUsed ? streams.stderr : streams.stdout,
      truncated: omittedBytes.stdout + omittedBytes.stderr + (both?.omittedBytes ?? 0) > 0,
      omittedBytes,
    };
  }
}

/** Decodes UTF-8 without cutting a character in two. Where bytes were left out the text says how many. */
export function textOf(kept: KeptBytes): string {
  const { head, omittedBytes, tail } = withoutCutCharacters(kept);
  if (omittedBytes === 0) return head.toString();
  return `${head.toString()}\n[… ${omittedBytes} bytes left out …]\n${tail.toString()}`;
}
