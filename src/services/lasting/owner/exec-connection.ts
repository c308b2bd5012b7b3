import { posix } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { PtySize, SandboxProcess } from "../../../sandbox/index.js";
import type { ServedProcess } from "../../serve/processes/served-process.js";
import type { InUse, ServedSandbox } from "../../serve/sandboxes/served-sandbox.js";
import { EXEC_PROTOCOL, encodeFrame, FRAME, type Frame, FrameReader } from "../wire/frames.js";
import { type ConnectedCommand, commandShape, sizeShape } from "../wire/messages.js";
import { asSentError } from "../wire/sent-error.js";
import type { HeldSandbox } from "./lasting-set.js";

/** What the connection has changed into by this answer is read and written as frames. */
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${EXEC_PROTOCOL}\r\n\r\n`;

/**
 * Runs one command in a sandbox for as long as the connection lasts: if the client goes first, the command is ended with all its processes.
 * `find` says which sandbox, and is called when the command has arrived.
 */
export async function serveExec(socket: Duplex, head: Buffer, find: () => HeldSandbox): Promise<void> {
  await serve({ socket, head }, async (connection) => {
    const command = await connection.command;
    const { served } = find();
    if (command.isDetached) await connection.start(command, served);
    else await served.use(connection.gone, async (inUse) => await connection.run(command, inUse));
  });
}

/** Connects the client with the shell that all who attach share, until it or the client goes. The shell goes on. */
export async function serveAttach(socket: Duplex, head: Buffer, find: () => HeldSandbox): Promise<void> {
  await serve({ socket, head }, async (connection) => {
    const { env, pty } = await connection.command;
    const { served, shell } = find();
    await connection.attach(await shell.join(served.processes, { env, pty: pty ?? USUAL_SIZE }));
  });
}

const USUAL_SIZE = { rows: 24, cols: 80 };

async function serve(
  { socket, head }: { socket: Duplex; head: Buffer },
  run: (connection: ExecConnection) => Promise<void>,
): Promise<void> {
  const connection = new ExecConnection(socket);
  socket.write(SWITCHED);
  if (head.length > 0) connection.take(head);
  socket.on("data", (chunk: Buffer) => connection.take(chunk));
  try {
    await run(connection);
  } catch (error) {
    await connection.fail(error);
  } finally {
    connection.end();
  }
}

/** How long a client has to end its side of the connection once it has been told everything. */
const LAST_FRAMES_MS = 10_000;
/** How much of what the shared shell has printed earlier is shown to whoever attaches: it should say where the shell is. */
const SHOWN_AGAIN_BYTES = 4096;

/** What the client's frames are for. */
interface FrameTarget {
  /** Resolves, and never rejects, when the bytes are taken, or will never be. */
  write(bytes: Buffer): Promise<void>;
  endInput(): void;
  signal(name: string): Promise<void>;
  /** Error: for a size that no terminal has. */
  resize(size: PtySize): void;
}

function framesTo(process: SandboxProcess): FrameTarget {
  const { stdin } = process;
  stdin?.on("error", () => undefined);
  return {
    write: async (bytes) => {
      // What a command does not take any more counts as taken, so that the client can end.
      if (stdin?.writable === true) await new Promise<void>((resolve) => stdin.write(bytes, () => resolve()));
    },
    endInput: () => void stdin?.end(),
    signal: async (name) => await process.kill(name as NodeJS.Signals).catch(() => undefined),
    resize: (size) => process.resize(size),
  };
}

/** Who leaves does not end the input of the others. */
function framesToShared(process: ServedProcess): FrameTarget {
  return {
    write: async (bytes) => await process.write(Buffer.from(bytes)).catch(() => undefined),
    endInput: () => undefined,
    signal: async (name) => await process.signal(name).catch(() => undefined),
    resize: (size) => process.resize(size),
  };
}

class ExecConnection {
  /** Rejects for a client that begins with something else, or goes. */
  readonly command: Promise<ConnectedCommand>;
  readonly #socket: Duplex;
  readonly #reader = new FrameReader();
  readonly #gone = new AbortController();
  readonly #settle: { started(command: ConnectedCommand): void; refused(error: Error): void } | undefined;
  /** Frames that came before the command was started. */
  #early: Frame[] | null = null;
  #target: FrameTarget | undefined;
  /** Called when something has arrived, or the client has gone. */
  #onChange: () => void = () => undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    let settle: { started(command: ConnectedCommand): void; refused(error: Error): void } | undefined;
    this.command = new Promise((resolve, reject) => {
      settle = { started: resolve, refused: reject };
    });
    this.#settle = settle;
    socket.on("error", () => undefined);
    // A client that ends its side has no more use for the command.
    socket.once("end", () => this.#leave());
    socket.once("close", () => this.#leave());
  }

  /** Aborted when the client has gone. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  take(chunk: Buffer): void {
    const frames = this.#reader.push(chunk);
    if (frames === null) return void this.#socket.destroy();
    for (const frame of frames) this.#takeFrame(frame);
    this.#onChange();
  }

  async start({ argv, cwd, env, timeoutMs, pty }: ConnectedCommand, served: ServedSandbox): Promise<void> {
    const { workingDirectory } = served.record;
    const process = await served.processes.start(
      {
        ...{ argv, env, timeoutMs: timeoutMs ?? undefined, pty: pty ?? undefined, stdin: "closed" },
        cwd: posix.resolve(workingDirectory, cwd ?? ""),
      },
      { signal: this.gone },
    );
    await this.#ended(process.record);
  }

  async run(command: ConnectedCommand, { sandbox, cwd, env, signal, onOutput }: InUse): Promise<void> {
    const { argv, timeoutMs, pty, takesInput, keepsOutput } = command;
    const options = {
      cwd: posix.resolve(cwd, command.cwd ?? ""),
      env: { ...env, ...command.env },
      timeoutMs: timeoutMs ?? undefined,
      signal,
    };
    if (keepsOutput) {
      const stdin = takesInput ? await this.#wholeInput() : undefined;
      // `output` repeats the contents of `stdout` and `stderr`.
      const { output: _, ...result } = await sandbox.exec(argv, {
        ...{ ...options, stdin },
        onStdout: (chunk) => onOutput?.("stdout", chunk),
        onStderr: (chunk) => onOutput?.("stderr", chunk),
      });
      return await this.#ended(result);
    }
    const process = await sandbox.spawn(argv, {
      ...options,
      pty: pty ?? undefined,
      stdin: takesInput ? "pipe" : "closed",
    });
    this.#passFramesTo(framesTo(process));
    const [ended] = await Promise.all([
      process.exit,
      this.#pass(process.stdout, FRAME.stdout, (chunk) => onOutput?.(pty === null ? "stdout" : "pty", chunk)),
      process.stderr && this.#pass(process.stderr, FRAME.stderr, (chunk) => onOutput?.("stderr", chunk)),
    ]);
    await this.#ended({ ...ended, image: sandbox.image });
  }

  async attach(process: ServedProcess): Promise<void> {
    const { output } = process;
    this.#passFramesTo(framesToShared(process));
    try {
      for await (const { data } of output.follow(Math.max(0, output.end - SHOWN_AGAIN_BYTES), this.gone))
        await this.#send(FRAME.stdout, data);
    } catch (error) {
      if (!this.gone.aborted) throw error;
    }
    await this.#ended(process.record);
  }

  async fail(error: unknown): Promise<void> {
    if (this.gone.aborted) return;
    await this.#send(FRAME.error, JSON.stringify(asSentError(error)));
  }

  end(): void {
    this.#socket.end();
    const timer = setTimeout(() => this.#socket.destroy(), LAST_FRAMES_MS);
    this.#socket.once("close", () => clearTimeout(timer));
  }

  /** All that the client gives the command before it starts. */
  async #wholeInput(): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (;;) {
      for (const { type, payload } of this.#early?.splice(0) ?? []) {
        if (type === FRAME.inputEnd) return Buffer.concat(pieces);
        if (type !== FRAME.input) continue;
        pieces.push(payload);
        this.#noteTaken(payload.length);
      }
      this.gone.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  #takeFrame(frame: Frame): void {
    const { type, payload } = frame;
    if (this.#early === null) {
      this.#early = [];
      const command = type === FRAME.start ? readOrNull(commandShape, parseJson(payload.toString())) : null;
      if (command !== null) this.#settle?.started(command);
      else this.#settle?.refused(noCommand());
      return;
    }
    const target = this.#target;
    if (target === undefined) return void this.#early.push({ type, payload: Buffer.from(payload) });
    if (type === FRAME.input) void target.write(payload).finally(() => this.#noteTaken(payload.length));
    else if (type === FRAME.inputEnd) target.endInput();
    else if (type === FRAME.signal) void target.signal(payload.toString());
    else if (type === FRAME.resize) resize(target, payload);
  }

  #passFramesTo(target: FrameTarget): void {
    this.#target = target;
    for (const frame of this.#early?.splice(0) ?? []) this.#takeFrame(frame);
  }

  #noteTaken(bytes: number): void {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(bytes);
    if (this.#socket.writable) this.#socket.write(encodeFrame(FRAME.taken, count));
  }

  /** The command waits while the client does not read. */
  async #pass(output: Readable, type: number, note: (chunk: Buffer) => void): Promise<void> {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      note(chunk);
      await this.#send(type, chunk);
    }
  }

  async #ended(end: object): Promise<void> {
    await this.#send(FRAME.ended, JSON.stringify(end));
  }

  /** Resolves when there is room for more, or nobody who would read it. */

  async #send(type: number, payload: Uint8Array | string): Promise<void> {
    if (!this.#socket.writable || this.#socket.write(encodeFrame(type, payload))) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        this.#socket.off("drain", go).off("close", go);
        resolve();
      };
      this.#socket.on("drain", go).on("close", go);
    });
  }

  #leave(): void {
    const error = new DOMException("the client has disconnected", "AbortError");
    this.#gone.abort(error);
    this.#settle?.refused(error);
    this.#onChange();
  }
}

function resize(target: FrameTarget, payload: Buffer): void {
  const size = readOrNull(sizeShape, parseJson(payload.toString()));
  try {
    if (size !== null) target.resize(size);
  } catch {
    // It is a size that no terminal has, or the command has no terminal.
  }
}

function noCommand(): BrigError {
  return new BrigError("the connection does not begin with a command", { code: "serve.refused" });
}
