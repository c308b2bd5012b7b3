import { posix } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { OnCopied, PtySize, SandboxProcess } from "../../../sandbox/index.js";
import type { ServedProcess } from "../../serve/processes/served-process.js";
import type { InUse } from "../../serve/sandboxes/served-sandbox.js";
import { EXEC_PROTOCOL, encodeFrame, FRAME, type Frame, FrameReader } from "../wire/frames.js";
import {
  type BegunCommand,
  type ConnectedCommand,
  commandShape,
  type ResumedConnection,
  resumeShape,
  sizeShape,
} from "../wire/messages.js";
import { asSentError } from "../wire/sent-error.js";
import type { ConnectedCommands } from "./connected-commands.js";
import type { HeldSandbox } from "./lasting-set.js";

/** What the connection has changed into by this answer is read and written as frames. */
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${EXEC_PROTOCOL}\r\n\r\n`;

interface WantedSandbox {
  /** Called when the command has arrived. */
  find(): HeldSandbox;
  /** Resolves once it is taken over, if another owner has kept it before. */
  taken(): Promise<void>;
}

/** Runs one command in a sandbox for as long as the connection lasts: if the client goes first, the command is ended with all its processes. */
export async function serveExec(socket: Duplex, head: Buffer, wanted: WantedSandbox): Promise<void> {
  await serve({ socket, head }, async (connection) => {
    const command = await connection.command;
    if (isResumed(command)) await wanted.taken();
    const { served, connected, points } = wanted.find();
    // The client of a model takes restore points itself.
    const noted = async () =>
      isResumed(command) || command.callId == null
        ? await points.afterCommand(connection.onCopied)
        : undefined;
    if (!isResumed(command) && command.isDetached) return await connection.start(command, { served, points });
    await served.use(connection.gone, async (inUse) => {
      const use = { inUse, connected, noted };
      await (isResumed(command) ? connection.goOn(command, use) : connection.run(command, use));
    });
  });
}

/** Connects the client with the shell that all who attach share, until it or the client goes. The shell goes on. */
export async function serveAttach(socket: Duplex, head: Buffer, wanted: WantedSandbox): Promise<void> {
  await serve({ socket, head }, async (connection) => {
    const command = await connection.command;
    if (isResumed(command)) await wanted.taken();
    const { served, shell } = wanted.find();
    if (isResumed(command))
      return await connection.attach(served.processes.get(command.id), { after: command.stdout });
    const { env, pty } = command;
    await connection.attach(await shell.join(served.processes, { env, pty: pty ?? USUAL_SIZE }));
  });
}

function isResumed(command: ConnectedCommand | ResumedConnection): command is ResumedConnection {
  return "stdout" in command;
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
/** How often a client is told how much is copied. */
const TOLD_EVERY_MS = 100;
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
    signal: async (name) =>
      await process.kill(name === "" ? undefined : (name as NodeJS.Signals)).catch(() => undefined),
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

interface Settle {
  started(command: ConnectedCommand | ResumedConnection): void;
  refused(error: Error): void;
}

interface FollowOptions {
  inUse: InUse;
  /** Called before the client is told of the end. */
  noted: () => Promise<unknown>;
  hasTerminal: boolean;
  known?: { stdout: number; stderr: number };
}

interface CommandUse {
  inUse: InUse;
  connected: ConnectedCommands;
  /** Called before the client is told of the end. */
  noted: () => Promise<unknown>;
}

class ExecConnection {
  /** Rejects for a client that begins with something else, or goes. */
  readonly command: Promise<ConnectedCommand | ResumedConnection>;
  readonly #socket: Duplex;
  readonly #reader = new FrameReader();
  readonly #gone = new AbortController();
  readonly #settle: Settle | undefined;
  /** Frames that came before the command was started. */
  #early: Frame[] | null = null;
  #target: FrameTarget | undefined;
  /** How much input the command has taken, if that is not only of this client. */
  #takenOf: (() => number) | undefined;
  #writingCount = 0;
  /** When the client was told last how much is copied. */
  #toldAtMs = Number.NEGATIVE_INFINITY;
  /** Called when something has arrived, or the client has gone. */
  #onChange: () => void = () => undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    let settle: Settle | undefined;
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

  async start(
    { argv, cwd, env, timeoutMs, pty }: ConnectedCommand,
    { served, points }: Pick<HeldSandbox, "served" | "points">,
  ): Promise<void> {
    const { workingDirectory } = served.record;
    const process = await served.processes.start(
      {
        ...{ argv, env, timeoutMs: timeoutMs ?? undefined, pty: pty ?? undefined, stdin: "closed" },
        cwd: posix.resolve(workingDirectory, cwd ?? ""),
      },
      { signal: this.gone },
    );
    void process.ended.catch(() => undefined).then(() => points.afterCommand());
    await this.#ended(process.record);
  }

  async run(command: ConnectedCommand, { inUse, connected, noted }: CommandUse): Promise<void> {
    const { id, argv, timeoutMs, pty, takesInput, keepsOutput } = command;
    const { sandbox, cwd, env, signal, onOutput } = inUse;
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
      await noted();
      return await this.#ended(result);
    }
    const process = await connected.start(id, argv, {
      ...options,
      pty: pty ?? undefined,
      stdin: takesInput ? "pipe" : "closed",
      mergeOutput: command.mergeOutput ?? undefined,
      endsTree: command.endsTree ?? undefined,
      callId: command.callId ?? undefined,
    });
    try {
      await this.#follow(process, { inUse, noted, hasTerminal: pty !== null });
    } finally {
      connected.forget(id);
    }
  }

  /** Goes on with a command whose client was connected with another owner. */
  async goOn(
    { id, stdout, stderr }: ResumedConnection,
    { inUse, connected, noted }: CommandUse,
  ): Promise<void> {
    const { process, lost, inputBytes, options } = connected.claim(id);
    const end = () => void process.kill().catch(() => undefined);
    inUse.signal.addEventListener("abort", end, { once: true });
    if (inUse.signal.aborted) end();
    try {
      await this.#begin({ id, stdout, stderr, input: inputBytes });
      const hasTerminal = options.pty !== undefined;
      const missing = Math.max(0, lost.stdout - stdout) + Math.max(0, lost.stderr - stderr);
      if (missing > 0) await this.#send(hasTerminal ? FRAME.stdout : FRAME.stderr, lostText(missing));
      const known = { stdout: stdout - lost.stdout, stderr: stderr - lost.stderr };
      await this.#follow(process, { inUse, noted, hasTerminal, known });
    } finally {
      inUse.signal.removeEventListener("abort", end);
      connected.forget(id);
    }
  }

  async #begin(begun: BegunCommand): Promise<void> {
    await this.#send(FRAME.begun, JSON.stringify(begun));
  }

  /** Resolves when the client has been told everything. `known` is what it has of the output already. */
  async #follow(
    process: SandboxProcess,
    { inUse, noted, hasTerminal, known = { stdout: 0, stderr: 0 } }: FollowOptions,
  ): Promise<void> {
    const { sandbox, onOutput } = inUse;
    this.#passFramesTo(framesTo(process));
    const [ended] = await Promise.all([
      process.exit,
      this.#pass(process.stdout, {
        ...{ type: FRAME.stdout, known: known.stdout },
        note: (chunk) => onOutput?.(hasTerminal ? "pty" : "stdout", chunk),
      }),
      process.stderr &&
        this.#pass(process.stderr, {
          ...{ type: FRAME.stderr, known: known.stderr },
          note: (chunk) => onOutput?.("stderr", chunk),
        }),
    ]);
    await noted();
    await this.#ended({ ...ended, image: sandbox.image });
  }

  /** `after` is for a client that was connected with another owner. */
  async attach(process: ServedProcess, { after }: { after?: number } = {}): Promise<void> {
    const { id, output, inputBytes } = process;
    const from = after ?? Math.max(0, output.end - SHOWN_AGAIN_BYTES);
    const input = process.isRunning ? inputBytes : null;
    await this.#begin({ id, stdout: from, stderr: 0, input });
    this.#takenOf = () => process.inputBytes;
    const noteOthers = () => void (this.#writingCount === 0 && this.#noteTaken(0));
    process.inputListeners.add(noteOthers);
    this.#passFramesTo(framesToShared(process));
    try {
      for await (const { data, lost } of output.follow(from, this.gone)) {
        if (lost > 0) await this.#send(FRAME.stdout, lostText(lost));
        await this.#send(FRAME.stdout, data);
      }
    } catch (error) {
      if (!this.gone.aborted) throw error;
    } finally {
      process.inputListeners.delete(noteOthers);
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
      const shape = type === FRAME.start ? commandShape : type === FRAME.resume ? resumeShape : null;
      const command =
        shape && readOrNull<ConnectedCommand | ResumedConnection>(shape, parseJson(payload.toString()));
      if (command !== null) this.#settle?.started(command);
      else this.#settle?.refused(noCommand());
      return;
    }
    const target = this.#target;
    if (target === undefined) return void this.#early.push({ type, payload: Buffer.from(payload) });
    if (type === FRAME.input) void this.#write(target, payload);
    else if (type === FRAME.inputEnd) target.endInput();
    else if (type === FRAME.signal) void target.signal(payload.toString());
    else if (type === FRAME.resize) resize(target, payload);
  }

  async #write(target: FrameTarget, payload: Buffer): Promise<void> {
    this.#writingCount++;
    await target.write(payload);
    this.#writingCount--;
    this.#noteTaken(payload.length);
  }

  #passFramesTo(target: FrameTarget): void {
    this.#target = target;
    for (const frame of this.#early?.splice(0) ?? []) this.#takeFrame(frame);
  }

  #noteTaken(bytes: number): void {
    const all = this.#takenOf?.();
    const count = Buffer.alloc(all === undefined ? 4 : 12);
    count.writeUInt32BE(bytes);
    if (all !== undefined) count.writeBigUInt64BE(BigInt(all), 4);
    if (this.#socket.writable) this.#socket.write(encodeFrame(FRAME.taken, count));
  }

  /** The command waits while the client does not read. */
  async #pass(
    output: Readable,
    { type, known, note }: { type: number; known: number; note: (chunk: Buffer) => void },
  ): Promise<void> {
    let skipped = Math.max(0, known);
    for await (const chunk of output as AsyncIterable<Buffer>) {
      note(chunk);
      const rest = chunk.subarray(skipped);
      skipped -= Math.min(skipped, chunk.length);
      if (rest.length > 0) await this.#send(type, rest);
    }
  }

  /** Whoever is slow need not be told all of it. */
  readonly onCopied: OnCopied = (copied) => {
    const now = performance.now();
    if (now - this.#toldAtMs < TOLD_EVERY_MS || !this.#socket.writable || this.#socket.writableLength > 0)
      return;
    this.#toldAtMs = now;
    this.#socket.write(encodeFrame(FRAME.copied, JSON.stringify(copied)));
  };

  /** Resolves when the system has it for the client, which then gets it even if this process is killed. */
  async #ended(end: object): Promise<void> {
    if (!this.#socket.writable) return;
    await new Promise<void>((resolve) =>
      this.#socket.write(encodeFrame(FRAME.ended, JSON.stringify(end)), () => resolve()),
    );
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

function lostText(bytes: number): string {
  return `brig: ${bytes} bytes of the output are lost, because they were not read in time\n`;
}

function noCommand(): BrigError {
  return new BrigError("the connection does not begin with a command", { code: "serve.refused" });
}
