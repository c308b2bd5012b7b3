import { Readable, Writable } from "node:stream";
import { BrigError, isBrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { pause } from "../../../lib/time/pause.js";
import { sharedSignal } from "../../../lib/time/shared-signal.js";
import type { PortableSpawnOptions, PtySize } from "../../../sandbox/index.js";
import { outputSchema, processSchema, type RemoteProcessRecord } from "../wire/process-schemas.js";
import type { RemoteCallOptions, RemoteProcess } from "./client-types.js";
import type { HttpCalls } from "./http-calls.js";
import { sentVariables } from "./sent-variables.js";

/** The calls to a service, and one of its sandboxes. */
interface RemotePlace {
  calls: HttpCalls;
  sandbox: string;
}

/** How long one request waits for output. After that, the next one is sent at once. */
const POLL_MS = 30_000;
/**
 * How long to wait before the output is asked for again, while the service is not reached or has no room for the answer. Half a minute in all, so that it
 * may be started again meanwhile.
 */
const RETRY_AFTER_MS = [100, 200, 400, ...Array<number>(36).fill(800)];
/** A request that fails after so long was being answered. */
const ANSWERS_WITHIN_MS = 1000;
/** The most input in one request. */
const INPUT_BYTES = 8 * 1024 * 1024;
const STREAM_BUFFER_BYTES = 256 * 1024;

export async function spawnedProcess(
  place: RemotePlace,
  argv: readonly string[],
  options: PortableSpawnOptions,
): Promise<RemoteProcess> {
  const { env, signal, ...rest } = options;
  const body = { argv, ...rest, env: sentVariables(env) };
  const { id } = await place.calls.json("startProcess", processSchema, { id: place.sandbox, body, signal });
  const { stdin, pty, mergeOutput } = options;
  return new ReadProcess(place, id, {
    ...{ after: 0, signal, hasInput: stdin !== "closed", canResize: pty !== undefined },
    hasStderr: pty === undefined && mergeOutput !== true,
  });
}

/** Error: `serve.unknown`. */
export async function attachedProcess(
  place: RemotePlace,
  id: string,
  { after = 0, signal }: RemoteCallOptions & { after?: number | undefined },
): Promise<RemoteProcess> {
  await place.calls.json("getProcess", processSchema, { id: place.sandbox, process: id, signal });
  return new ReadProcess(place, id, { after, hasInput: true, canResize: true, hasStderr: true });
}

interface ReadProcessOptions {
  after: number;
  hasInput: boolean;
  hasStderr: boolean;
  canResize: boolean;
  /** Ends the process. */
  signal?: AbortSignal | undefined;
}

/** A process of a service whose output is read as fast as it is taken from here. */
class ReadProcess implements RemoteProcess {
  readonly id: string;
  readonly stdin: Writable | null;
  readonly stdout = new PacedOutput();
  readonly stderr: PacedOutput | null;
  readonly exit: RemoteProcess["exit"];
  readonly #place: RemotePlace;
  readonly #canResize: boolean;
  readonly #stopped = new AbortController();
  #readBytes: number;
  #lostBytes = 0;
  #aborting: Promise<void> | undefined;

  constructor(
    place: RemotePlace,
    id: string,
    { after, hasInput, hasStderr, canResize, signal }: ReadProcessOptions,
  ) {
    this.id = id;
    this.#place = place;
    this.#canResize = canResize;
    this.#readBytes = after;
    this.stdin = hasInput ? this.#input() : null;
    this.stderr = hasStderr ? new PacedOutput() : null;
    const onAbort = () => {
      this.#aborting = this.#abort(signal?.reason);
    };
    if (signal !== undefined) sharedSignal(signal).addEventListener("abort", onAbort, { once: true });
    this.exit = this.#read().finally(() => signal?.removeEventListener("abort", onAbort));
    // A caller that ignores `exit` still sees its error on the streams.
    this.exit.catch(() => undefined);
    if (signal?.aborted) onAbort();
  }

  get readBytes(): number {
    return this.#readBytes;
  }

  get lostBytes(): number {
    return this.#lostBytes;
  }

  async kill(signal?: NodeJS.Signals): Promise<void> {
    if (signal !== undefined) await this.#call("signalProcess", { signal });
    else
      await this.#call("endProcess").catch((error: unknown) => {
        // The sandbox was removed, and the process with it.
        if (!isBrigError(error, "serve.unknown")) throw error;
      });
  }

  resize({ rows, cols }: PtySize): void {
    if (!this.#canResize)
      throw new BrigError("only a process with a pty can be resized", { code: "exec.invalid" });
    // If the service is not reached, `exit` says so.
    this.#call("resizeProcess", { rows, cols }).catch(() => undefined);
  }

  detach(): void {
    this.#stopped.abort(
      new BrigError("the process is not read any more", {
        code: "aborted",
        hint: "it runs on: sandbox.process(id) goes on with it",
      }),
    );
  }

  async #abort(reason: unknown): Promise<void> {
    await this.kill().catch(() => undefined);
    this.#stopped.abort(reason);
  }

  async #read(): RemoteProcess["exit"] {
    try {
      while (!(await this.#readMore())) await this.#room();
      const { exitCode, signal, timedOut } = await this.#record();
      // It may have ended because of the abort.
      await this.#aborting;
      this.#stopped.signal.throwIfAborted();
      this.stdout.push(null);
      this.stderr?.push(null);
      return { exitCode: exitCode ?? 0, signal, timedOut };
    } catch (error) {
      const cause = error instanceof Error ? error : undefined;
      this.stdout.destroy(cause);
      this.stderr?.destroy(cause);
      throw error;
    } finally {
      this.stdin?.destroy();
    }
  }

  /** Whether that was the last of it. */
  async #readMore(): Promise<boolean> {
    const { chunks, next, lost, ended } = await this.#patiently(async (signal) => {
      const query = { after: this.#readBytes, waitMs: POLL_MS };
      return await this.#place.calls.json("readOutput", outputSchema, { ...this.#names, query, signal });
    });
    for (const { stream, data } of chunks)
      (stream === "stderr" ? (this.stderr ?? this.stdout) : this.stdout).push(Buffer.from(data, "base64"));
    this.#readBytes = next;
    this.#lostBytes += lost;
    return ended;
  }

  async #record(): Promise<RemoteProcessRecord> {
    return await this.#patiently(
      async (signal) => await this.#place.calls.json("getProcess", processSchema, { ...this.#names, signal }),
    );
  }

  /** Reads something, again if that fails for a reason that may pass: reading again gives the same. */
  async #patiently<T>(read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#stopped;
    for (let failures = 0; ; failures++) {
      const askedAt = performance.now();
      try {
        return await read(signal);
      } catch (error) {
        if (!isBrigError(error, "serve.unreachable") && !isBrigError(error, "serve.busy")) throw error;
        // The service was there until now.
        if (performance.now() - askedAt > ANSWERS_WITHIN_MS) failures = 0;
        const ms = RETRY_AFTER_MS[failures];
        if (ms === undefined) throw error;
        await pause(ms, signal);
      }
    }
  }

  async #room(): Promise<void> {
    const { signal } = this.#stopped;
    await this.stdout.room(signal);
    await this.stderr?.room(signal);
  }

  get #names() {
    return { id: this.#place.sandbox, process: this.id };
  }

  async #call(name: "signalProcess" | "endProcess" | "resizeProcess", body?: object): Promise<void> {
    await this.#place.calls.bytes(name, { ...this.#names, body });
  }

  #input(): Writable {
    const { calls } = this.#place;
    const send = async (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += INPUT_BYTES)
        await calls.bytes("writeInput", {
          ...this.#names,
          body: bytes.subarray(at, at + INPUT_BYTES),
          signal: this.#stopped.signal,
        });
    };
    const stream = new Writable({
      highWaterMark: STREAM_BUFFER_BYTES,
      write(chunk: Buffer, _encoding, callback) {
        send(chunk)
          .catch(unlessLate)
          .then(() => callback(), callback);
      },
      writev(pieces, callback) {
        const whole = Buffer.concat(pieces.map(({ chunk }) => chunk as Buffer));
        send(whole)
          .catch(unlessLate)
          .then(() => callback(), callback);
      },
      final: (callback) => {
        calls.bytes("closeInput", this.#names).then(() => callback(), callback);
      },
    });
    // If the service is not reached, `exit` says so.
    stream.on("error", () => undefined);
    return stream;
  }
}

/** A process of this machine takes input that comes too late, and nothing reads it. */
function unlessLate(error: unknown): void {
  if (!isBrigError(error, "exec.invalid")) throw error;
}

/** A stream that says when it has room for more. */
class PacedOutput extends Readable {
  #hasRoom = true;
  #resume: () => void = () => undefined;

  constructor() {
    super({ highWaterMark: STREAM_BUFFER_BYTES });
    // If there were no listener, an error would crash a caller who does not use the stream. `exit` rejects with it too.
    this.on("error", () => undefined);
  }

  override push(chunk: Buffer | null): boolean {
    this.#hasRoom = super.push(chunk);
    return this.#hasRoom;
  }

  /** Resolves when it is read as far as it wants to be. Error: the signal's reason. */
  async room(signal: AbortSignal): Promise<void> {
    if (this.#hasRoom || this.destroyed) return;
    await beforeAbort(
      new Promise<void>((resolve) => {
        this.#resume = resolve;
      }),
      signal,
    );
  }

  override _read(): void {
    this.#hasRoom = true;
    this.#resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this._read();
    callback(error);
  }
}
