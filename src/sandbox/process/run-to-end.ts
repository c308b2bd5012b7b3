import { BrigError } from "../../errors.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import { HeadAndTail, type KeptBytes, withoutCutCharacters } from "../../output/head-and-tail.js";
import { FrameType } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { ExecOptions, ExecResult, ExitStatus } from "../sandbox-types.js";
import { Command } from "./command.js";
import { exitStatus, LEFTOVERS_ENDED, startError } from "./exit-record.js";
import { encodeSpawn } from "./spawn-request.js";

const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024;

/** What a session gives each of its commands. */
export interface CommandSetting {
  link: RunnerLink;
  cwd: string;
  env: Readonly<Record<string, string>>;
  onStuck(): void;
}

/** Runs one command to its end and gathers what it printed. */
export async function exec(
  setting: CommandSetting,
  argv: readonly string[],
  options: ExecOptions,
): Promise<ExecResult<string | Buffer>> {
  options.signal?.throwIfAborted();
  const cwd = options.cwd ?? setting.cwd;
  const payload = encodeSpawn({
    argv,
    cwd,
    env: options.env ? { ...setting.env, ...options.env } : setting.env,
    timeoutMs: options.timeoutMs,
    pty: undefined,
    hasStdin: options.stdin !== undefined && options.stdin.length > 0,
    mergeOutput: false,
    endsTree: options.endsTree ?? false,
  });
  const gathered = new GatheredOutput(options);
  const command = new Command(
    setting.link,
    { type: FrameType.spawn, payload, timeoutMs: options.timeoutMs },
    { onOutput: (data, isStderr) => gathered.take(data, isStderr), onStuck: setting.onStuck },
  );
  const cancel = () => command.kill();
  if (options.signal !== undefined)
    sharedSignal(options.signal).addEventListener("abort", cancel, { once: true });
  try {
    const [record] = await Promise.all([command.ended, feed(command, options.stdin)]);
    options.signal?.throwIfAborted();
    const failure = startError(record, { argv, cwd });
    if (failure) throw failure;
    if (record.treeLeft) setting.onStuck();
    const status = exitStatus(record, String(argv[0]));
    if (command.endedLeftovers && status.startFailure === null)
      gathered.take(Buffer.from(LEFTOVERS_ENDED), true);
    return gathered.result(status);
  } finally {
    options.signal?.removeEventListener("abort", cancel);
  }
}

async function feed(command: Command, stdin: string | Uint8Array | undefined): Promise<void> {
  if (stdin === undefined || stdin.length === 0) return;
  const bytes =
    typeof stdin === "string"
      ? Buffer.from(stdin)
      : Buffer.from(stdin.buffer, stdin.byteOffset, stdin.byteLength);
  await command.write(bytes);
  command.endInput();
}

function checkedBudget(maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES): number {
  if (Number.isSafeInteger(maxOutputBytes) && maxOutputBytes >= 0) return maxOutputBytes;
  throw new BrigError(`maxOutputBytes must be a whole number of bytes, not ${maxOutputBytes}`, {
    code: "exec.invalid",
  });
}

/** Stdout, stderr and both in order of arrival, each within the same budget. */
class GatheredOutput {
  readonly #options: ExecOptions;
  readonly #stdout: HeadAndTail;
  readonly #stderr: HeadAndTail;
  /** Most commands write to one stream only: the merged output exists apart only once both were used. */
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

  result(status: ExitStatus): ExecResult<string | Buffer> {
    if (status.startFailure !== null) this.take(Buffer.from(`brig: ${status.startFailure.message}\n`), true);
    const isStderrUsed = this.#stderr.totalBytes > 0;
    const [stdout, stderr, both] = [this.#stdout.take(), this.#stderr.take(), this.#both?.take()];
    const read = (kept: KeptBytes) =>
      this.#options.encoding === "buffer" ? Buffer.concat([kept.head, kept.tail]) : textOf(kept);
    const streams = { stdout: read(stdout), stderr: read(stderr) };
    const omittedBytes = { stdout: stdout.omittedBytes, stderr: stderr.omittedBytes };
    const { exitCode, signal, durationMs, timedOut, outOfMemory, treeEnded, usage } = status;
    return {
      exitCode,
      signal,
      ...streams,
      output: both ? read(both) : isStderrUsed ? streams.stderr : streams.stdout,
      durationMs,
      timedOut,
      truncated: omittedBytes.stdout + omittedBytes.stderr + (both?.omittedBytes ?? 0) > 0,
      omittedBytes,
      outOfMemory,
      treeEnded,
      usage,
    };
  }
}

/** Decoded as UTF-8; where something was left out the text says how much, and no character is cut in two. */
export function textOf(kept: KeptBytes): string {
  const { head, omittedBytes, tail } = withoutCutCharacters(kept);
  if (omittedBytes === 0) return head.toString();
  return `${head.toString()}\n[… ${omittedBytes} bytes left out …]\n${tail.toString()}`;
}
