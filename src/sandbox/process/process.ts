import { Readable, Writable } from "node:stream";
import { BrigError } from "../../errors.js";
import type { CommandEnd } from "../output/command-end.js";
import type { PtySize } from "../portable-sandbox.js";
import type { SandboxProcess, SpawnOptions } from "../sandbox-types.js";
import {
  type BegunRequest,
  type Command,
  type CommandContext,
  type StartedCommand,
  startCommand,
} from "./command.js";
import { signalNumber } from "./signals.js";
import { encodeSize } from "./spawn-request.js";

/** A running command whose streams the caller uses. */
export class RunningProcess implements SandboxProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable | null;
  readonly exit: Promise<CommandEnd>;
  readonly #command: Command;
  readonly #hasPty: boolean;

  constructor(
    context: CommandContext,
    argv: readonly string[],
    options: SpawnOptions & { onChannel?: ((channel: number) => void) | undefined },
    begun?: BegunRequest | undefined,
  ) {
    const hasStdin = options.stdin !== "closed";
    const stdout = new PacedReadable();
    const stderr = options.pty || options.mergeOutput ? null : new PacedReadable();
    const { command, exit, notes } = startCommand(context, argv, {
      ...options,
      begun,
      hasStdin,
      onOutput: (data, isStderr) => (isStderr && stderr ? stderr : stdout).offer(data),
    });
    this.#command = command;
    this.#hasPty = options.pty !== undefined;
    this.stdin = hasStdin ? inputStream(command) : null;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exit = this.#finish({ exit, notes }, stdout, stderr);
    // A caller that ignores `exit` still sees its error on the streams.
    this.exit.catch(() => undefined);
  }

  async kill(signal?: NodeJS.Signals): Promise<void> {
    if (signal !== undefined) return this.#command.signal(checkedSignal(signal));
    this.#command.kill();
    await this.#command.ended.catch(() => undefined);
  }

  resize(size: PtySize): void {
    if (!this.#hasPty)
      throw new BrigError("only a process with a pty can be resized", { code: "exec.invalid" });
    this.#command.resize(encodeSize(size));
  }

  async #finish(
    { exit, notes }: Pick<StartedCommand, "exit" | "notes">,
    stdout: PacedReadable,
    stderr: PacedReadable | null,
  ): Promise<CommandEnd> {
    const last = stderr ?? stdout;
    try {
      const status = await exit;
      const failure = status.startFailure === null ? "" : `brig: ${status.startFailure.message}\n`;
      const text = notes() + failure;
      if (text !== "") void last.offer(Buffer.from(this.#hasPty ? withReturns(text) : text));
      stdout.push(null);
      stderr?.push(null);
      return status;
    } catch (error) {
      const cause = error instanceof Error ? error : undefined;
      stdout.destroy(cause);
      stderr?.destroy(cause);
      throw error;
    } finally {
      this.stdin?.destroy();
    }
  }
}

/** Output of a pseudo-terminal has a carriage return in each line end: without one, the next line would begin below the end of this one. */
function withReturns(text: string): string {
  return text.replaceAll("\n", "\r\n");
}

/** A Readable that makes the runner wait while its buffer is full. */
class PacedReadable extends Readable {
  /** Pending while the buffer is full. Several pieces of granted credit may wait for it. */
  #room: Promise<void> | undefined;
  #resume: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: 256 * 1024 });
    // If there were no listener, an error would crash a caller who does not use the stream. `exit` rejects with it
    // too.
    this.on("error", () => undefined);
  }

  offer(data: Buffer): void | Promise<void> {
    // A copy, because the link reuses the buffer that holds the data.
    if (this.destroyed || this.push(Buffer.from(data))) return undefined;
    this.#room ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
    return this.#room;
  }

  override _read(): void {
    const resume = this.#resume;
    this.#room = undefined;
    this.#resume = undefined;
    resume?.();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this._read();
    callback(error);
  }
}

function inputStream(command: Command): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, callback) {
      command.write(chunk).then(() => callback(), callback);
    },
    final(callback) {
      command.endInput();
      callback();
    },
  });
}

function checkedSignal(signal: NodeJS.Signals): number {
  const number = signalNumber(signal);
  if (number === undefined)
    throw new BrigError(`${String(signal)} is not a signal`, { code: "exec.invalid" });
  return number;
}
