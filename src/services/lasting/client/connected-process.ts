import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { CommandEnd, OnCopied, PtySize, SandboxProcess, SpawnOptions } from "../../../sandbox/index.js";
import { MAX_KEPT_PAYLOAD_BYTES } from "../wire/frames.js";
import { type ConnectedCommand, readCopied } from "../wire/messages.js";
import { asBrigError } from "../wire/sent-error.js";
import { CommandConnection } from "./command-connection.js";
import { unreachable } from "./owner-client.js";

/** Where commands of one lasting sandbox are started. */
export interface CommandPlace {
  socketPath: string;
  /** The path of the request. */
  path: string;
  /** Resolves when there is another owner. */
  reopen(): Promise<unknown>;
}

interface ConnectedOptions {
  signal?: AbortSignal | undefined;
  /** Called between the end of the command and that of the process with how much is stored of what the command has changed. */
  onCopied?: OnCopied | undefined;
}

/** The command that the options of `spawn` describe. */
export function connectedCommand(
  argv: readonly string[],
  { cwd, env = {}, timeoutMs, pty, stdin, mergeOutput, endsTree, callId }: SpawnOptions,
): ConnectedCommand {
  const variables = Object.entries(env).map(([name, value]) => [name, value ?? null]);
  return {
    ...{
      argv: [...argv],
      cwd: cwd ?? null,
      env: Object.fromEntries(variables),
      timeoutMs: timeoutMs ?? null,
    },
    ...{ pty: pty ?? null, takesInput: stdin !== "closed", keepsOutput: false, isDetached: false },
    ...{ mergeOutput, endsTree, callId },
    id: randomUUID(),
  };
}

/** A process in a lasting sandbox, which is used like one of a sandbox of this process. It ends with this process, and goes on with another owner. */
export class ConnectedProcess implements SandboxProcess {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable | null;
  readonly exit: Promise<CommandEnd>;
  readonly #connection: CommandConnection;

  constructor(
    place: CommandPlace,
    command: ConnectedCommand,
    { signal = new AbortController().signal, onCopied }: ConnectedOptions = {},
  ) {
    const stdout = new PacedOutput();
    const stderr = command.pty === null && command.mergeOutput !== true ? new PacedOutput() : null;
    let settle: { resolve(end: string): void; reject(error: Error): void } | undefined;
    const ended = new Promise<string>((resolve, reject) => {
      settle = { resolve, reject };
    });
    const connection = new CommandConnection(
      { ...place, command },
      {
        maxPayloadBytes: MAX_KEPT_PAYLOAD_BYTES,
        onOutput: (stream, bytes) => (stream === "stderr" && stderr !== null ? stderr : stdout).offer(bytes),
        onCopied(sent) {
          const copied = readCopied(parseJson(sent));
          if (copied !== null) onCopied?.(copied);
        },
        onEnded: (end) => settle?.resolve(end),
        onError: (error) => settle?.reject(asBrigError(parseJson(error))),
        onLost: (cause) => settle?.reject(unreachable(cause)),
      },
    );
    this.#connection = connection;
    this.stdin = command.takesInput ? inputOf(connection) : null;
    [this.stdout, this.stderr] = [stdout, stderr];
    this.exit = this.#finish(ended, { signal, outputs: [stdout, stderr].filter((one) => one !== null) });
    this.exit.catch(() => undefined);
  }

  async kill(name?: NodeJS.Signals): Promise<void> {
    if (name !== undefined) this.#connection.signal(name);
    else await this.#connection.leave();
  }

  /** Ends the command with everything that it has started. Then `exit` says how it has ended. */
  async end(): Promise<void> {
    this.#connection.signal("");
    await this.exit.catch(() => undefined);
  }

  resize({ rows, cols }: PtySize): void {
    this.#connection.resize({ rows, cols });
  }

  async #finish(
    ended: Promise<string>,
    { signal, outputs }: { signal: AbortSignal; outputs: readonly PacedOutput[] },
  ): Promise<CommandEnd> {
    const leave = () => void this.#connection.leave();
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      const end = parseJson(await ended) as CommandEnd | undefined;
      if (typeof end !== "object" || end === null) throw unreachable();
      for (const output of outputs) output.push(null);
      return end;
    } catch (error) {
      if (signal.aborted) await this.#connection.leave();
      const thrown = signal.aborted ? signal.reason : error;
      for (const output of outputs) output.destroy(thrown instanceof Error ? thrown : undefined);
      throw thrown;
    } finally {
      signal.removeEventListener("abort", leave);
      this.stdin?.destroy();
    }
  }
}

function inputOf(connection: CommandConnection): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      connection.write(chunk).then(() => done(), done);
    },
    final(done) {
      connection.endInput();
      done();
    },
  });
}

/** Makes the connection wait while nobody reads. */
class PacedOutput extends Readable {
  #resume: (() => void) | undefined;
  #room: Promise<void> | undefined;

  constructor() {
    super({ highWaterMark: 256 * 1024 });
    // A caller that does not use the stream learns of the error from `exit`.
    this.on("error", () => undefined);
  }

  offer(bytes: Buffer): Promise<void> | undefined {
    if (this.destroyed || this.push(Buffer.from(bytes))) return undefined;
    this.#room ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
    return this.#room;
  }

  override _read(): void {
    this.#resume?.();
    this.#resume = undefined;
    this.#room = undefined;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this._read();
    done(error);
  }
}
