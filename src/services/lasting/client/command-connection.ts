import { connect, type Socket } from "node:net";
import {
  EXEC_PROTOCOL,
  encodeFrame,
  FRAME,
  type Frame,
  FrameReader,
  HEAD_BYTES,
  INPUT_WINDOW_BYTES,
} from "../wire/frames.js";
import type { BegunCommand, ConnectedCommand, ResumedConnection } from "../wire/messages.js";

const TAKEN_BY_ALL_BYTES = 12;

/** What a connection tells its user, in the order of what has happened. */
export interface CommandListener {
  /** The owner has answered. */
  onOpen?(): void;
  /** The connection waits while the returned promise is pending. */
  onOutput(stream: "stdout" | "stderr", bytes: Buffer): Promise<void> | undefined;
  /** The command has ended, and so much is stored of what it has changed. JSON. */
  onCopied?(copied: string): void;
  /** The command has ended, and nothing follows. JSON. */
  onEnded(end: string): void;
  /** There is no command, or none any more. JSON. */
  onError(error: string): void;
  /** The connection has ended without either. `cause` is that of a connection that was never made. */
  onLost(cause: NodeJS.ErrnoException | null): void;
}

interface ConnectionPlace {
  socketPath: string;
  path: string;
  command: ConnectedCommand;
  /** Resolves when there is another owner, and rejects if there is none. Default: the end of the owner is the end of the command. */
  reopen?: (() => Promise<unknown>) | undefined;
}

/**
 * One command in a lasting sandbox, which lasts as long as this connection. If the owner is killed, the connection is made again with the next one, and
 * goes on where it was. It imports as little as possible, because `brig exec --in` loads this file
 * and hardly another one.
 */
export class CommandConnection {
  readonly #place: ConnectionPlace;
  readonly #listener: CommandListener & { maxPayloadBytes?: number };
  #socket: Socket;
  #reader: FrameReader;
  #isOpen = false;
  #isOver = false;
  #hasLeft = false;
  /** Whether frames arrive at an owner that knows the command. */
  #isReady = true;
  /** How much more input the owner takes. */
  #window = INPUT_WINDOW_BYTES;
  #onRoom: (() => void) | null = null;
  /** What has come; null if nobody could go on with the command. */
  #received: ResumedConnection | null;
  /** How much input the command has taken, and what was sent after that. */
  #taken = 0;
  #sent: Uint8Array[] = [];
  #hasEndedInput = false;
  #size: string | null = null;

  constructor(place: ConnectionPlace, listener: CommandListener & { maxPayloadBytes?: number }) {
    this.#place = place;
    this.#listener = listener;
    const { id } = place.command;
    this.#received = typeof id === "string" ? { id, stdout: 0, stderr: 0 } : null;
    this.#reader = new FrameReader(listener.maxPayloadBytes);
    this.#socket = this.#connect(encodeFrame(FRAME.start, JSON.stringify(place.command)));
  }

  /** The first frame goes with the request, which saves waiting for the answer. */
  #connect(first: Buffer): Socket {
    const { socketPath, path } = this.#place;
    let failure: NodeJS.ErrnoException | null = null;
    const socket = connect(socketPath);
    socket.on("error", (error: NodeJS.ErrnoException) => {
      failure = error;
    });
    socket.on("close", () => this.#lose(failure));
    let head = "";
    const takeHead = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!head.startsWith("HTTP/1.1 101 ")) return void socket.destroy();
      if (!this.#isOpen) this.#listener.onOpen?.();
      this.#isOpen = true;
      socket.off("data", takeHead);
      socket.on("data", (next: Buffer) => this.#take(next));
      this.#take(Buffer.from(head.slice(end + 4), "latin1"));
    };
    socket.on("data", takeHead);
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: ${EXEC_PROTOCOL}\r\n\r\n`,
    );
    socket.write(first);
    return socket;
  }

  #lose(failure: NodeJS.ErrnoException | null): void {
    const { reopen } = this.#place;
    const canGoOn = this.#isOpen && !this.#hasLeft && this.#received !== null && reopen !== undefined;
    const end = () => this.#over(() => this.#listener.onLost(failure));
    if (!canGoOn) return void end();
    this.#isReady = false;
    reopen().then(() => {
      if (this.#isOver) return;
      this.#reader = new FrameReader(this.#listener.maxPayloadBytes);
      this.#socket = this.#connect(encodeFrame(FRAME.resume, JSON.stringify(this.#received)));
    }, end);
  }

  /** The owner has found the command. What it has not taken is sent again. */
  #goOn({ id, stdout, stderr, input }: BegunCommand): void {
    this.#received = { id, stdout, stderr };
    const isFirst = this.#isReady;
    this.#isReady = true;
    if (isFirst) {
      this.#taken = input ?? 0;
      return;
    }
    this.#noteTaken((input ?? Number.MAX_SAFE_INTEGER) - this.#taken);
    this.#taken = input ?? 0;
    if (this.#size !== null) this.#send(FRAME.resize, this.#size);
    for (const bytes of this.#sent) this.#socket.write(encodeFrame(FRAME.input, bytes));
    if (this.#hasEndedInput) this.#send(FRAME.inputEnd);
  }

  #noteTaken(bytes: number): void {
    for (let left = bytes; left > 0; ) {
      const [first] = this.#sent;
      if (first === undefined) break;
      if (first.length > left) this.#sent[0] = first.subarray(left);
      else this.#sent.shift();
      const count = Math.min(left, first.length);
      this.#window += count;
      left -= count;
    }
    if (this.#window > 0) this.#go();
  }

  /** Whether there was an answer. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends input. Resolves when more may be sent, and when the command has ended. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return;
    if (bytes.length === 0) return;
    this.#window -= bytes.length;
    const frame = encodeFrame(FRAME.input, bytes);
    this.#sent.push(frame.subarray(HEAD_BYTES));
    if (this.#isReady) this.#socket.write(frame);
    while (this.#window <= 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve;
      });
  }

  endInput(): void {
    this.#hasEndedInput = true;
    this.#send(FRAME.inputEnd);
  }

  resize(size: { rows: number; cols: number }): void {
    this.#size = JSON.stringify(size);
    this.#send(FRAME.resize, this.#size);
  }

  signal(name: string): void {
    this.#send(FRAME.signal, name);
  }

  /** Leaves, which ends the command. Resolves when the owner has ended it. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    if (this.#socket.destroyed) return this.#over(() => this.#listener.onLost(null));
    const closed = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.end();
    this.#socket.resume();
    await closed;
  }

  #send(type: number, payload = ""): void {
    if (!this.#isOver && this.#isReady) this.#socket.write(encodeFrame(type, payload));
  }

  #take(chunk: Buffer): void {
    const frames = this.#reader.push(chunk);
    if (frames === null) return void this.#socket.destroy();
    for (const frame of frames) this.#takeFrame(frame);
  }

  #takeFrame({ type, payload }: Frame): void {
    const listener = this.#listener;
    if (type === FRAME.stdout) this.#output("stdout", payload);
    else if (type === FRAME.stderr) this.#output("stderr", payload);
    else if (type === FRAME.ended) this.#over(() => listener.onEnded(payload.toString()));
    else if (type === FRAME.error) this.#over(() => listener.onError(payload.toString()));
    else if (type === FRAME.copied) listener.onCopied?.(payload.toString());
    else if (type === FRAME.begun) this.#goOn(JSON.parse(payload.toString()));
    else if (type === FRAME.taken) {
      const bytes = payload.readUInt32BE(0);
      this.#taken =
        payload.length < TAKEN_BY_ALL_BYTES ? this.#taken + bytes : Number(payload.readBigUInt64BE(4));
      this.#noteTaken(bytes);
    }
  }

  #output(stream: "stdout" | "stderr", bytes: Buffer): void {
    if (this.#received !== null) this.#received[stream] += bytes.length;
    const written = this.#listener.onOutput(stream, bytes);
    if (written === undefined) return;
    this.#socket.pause();
    void written.finally(() => this.#socket.resume());
  }

  #over(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#go();
    tell();
    this.#socket.end();
  }

  #go(): void {
    this.#onRoom?.();
    this.#onRoom = null;
  }
}
