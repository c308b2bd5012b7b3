import { Readable, Writable } from "node:stream";
import { BrigError } from "../../errors.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import { FrameType } from "../channel/protocol.js";
import type { ExitStatus, PtySize, SandboxProcess, SpawnOptions } from "../sandbox-types.js";
import { Command } from "./command.js";
import { type ExitRecord, exitStatus, LEFTOVERS_ENDED, startError } from "./exit-record.js";
import type { CommandSetting } from "./run-to-end.js";
import { signalNumber } from "./signals.js";
import { encodeSize, encodeSpawn } from "./spawn-request.js";

/** Starts a command whose streams the caller drives. */
export function spawn(
  setting: CommandSetting,
  argv: readonly string[],
  options: SpawnOptions,
): SandboxProcess {
  options.signal?.throwIfAborted();
  return new RunningProcess(setting, argv, options);
}

class RunningProcess implements SandboxProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable | null;
  readonly exit: Promise<ExitStatus>;
  readonly #command: Command;
  readonly #hasPty: boolean;

  constructor(setting: CommandSetting, argv: readonly string[], options: SpawnOptions) {
    const cwd = options.cwd ?? setting.cwd;
    const hasStdin = options.stdin !== "closed";
    const stdout = new PacedReadable();
    const stderr = options.pty || options.mergeOutput ? null : new PacedReadable();
    const payload = encodeSpawn({
      argv,
      cwd,
      env: options.env ? { ...setting.env, ...options.env } : setting.env,
      timeoutMs: options.timeoutMs,
      pty: options.pty,
      hasStdin,
      mergeOutput: options.mergeOutput ?? false,
      endsTree: options.endsTree ?? false,
    });
    this.#command = new Command(
      setting.link,
      { type: FrameType.spawn, payload, timeoutMs: options.timeoutMs },
      {
        onOutput: (data, isStderr) => (isStderr && stderr ? stderr : stdout).offer(data),
        onStuck: setting.onStuck,
      },
    );
    this.#hasPty = options.pty !== undefined;
    this.stdin = hasStdin ? inputStream(this.#command) : null;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exit = this.#finish({ setting, argv, cwd, signal: options.signal }, [stdout, stderr]);
    // Whoever does not ask for the exit still has the streams' errors.
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
    started: {
      setting: CommandSetting;
      argv: readonly string[];
      cwd: string;
      signal: AbortSignal | undefined;
    },
    outputs: (PacedReadable | null)[],
  ): Promise<ExitStatus> {
    const cancel = () => this.#command.kill();
    const { signal } = started;
    if (signal !== undefined) sharedSignal(signal).addEventListener("abort", cancel, { once: true });
    try {
      const record = await this.#command.ended;
      started.signal?.throwIfAborted();
      const failure = startError(record, started);
      if (failure) throw failure;
      if (record.treeLeft) started.setting.onStuck();
      return this.#end(record, { program: String(started.argv[0]), outputs });
    } catch (error) {
      for (const output of outputs) output?.destroy(error instanceof Error ? error : undefined);
      throw error;
    } finally {
      started.signal?.removeEventListener("abort", cancel);
      this.stdin?.destroy();
    }
  }

  #end(
    record: ExitRecord,
    { program, outputs }: { program: string; outputs: (PacedReadable | null)[] },
  ): ExitStatus {
    const status = exitStatus(record, program);
    if (this.#command.endedLeftovers) void (outputs[1] ?? outputs[0])?.offer(Buffer.from(LEFTOVERS_ENDED));
    if (status.startFailure !== null)
      void (outputs[1] ?? outputs[0])?.offer(Buffer.from(`brig: ${status.startFailure.message}\n`));
    for (const output of outputs) output?.push(null);
    return status;
  }
}

/** A Readable whose source waits while its buffer is full. */
class PacedReadable extends Readable {
  /** Pending while the buffer is full. Several pieces may wait for the same room: their credit was granted before. */
  #room: Promise<void> | undefined;
  #resume: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: 256 * 1024 });
    // An error is also in `exit`; without this a caller who never looks at the stream would crash on it.
    this.on("error", () => undefined);
  }

  offer(data: Buffer): void | Promise<void> {
    // The bytes are borrowed: they lie in the buffer the stream reads into.
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
