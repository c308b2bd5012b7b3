import { connect, type Socket } from "node:net";
import {
  EXEC_PROTOCOL,
  encodeFrame,
  FRAME,
  type Frame,
  FrameReader,
  INPUT_WINDOW_BYTES,
} from "../wire/frames.js";
import type { ConnectedCommand } from "../wire/messages.js";

/** What a connection tells its user, in the order of what has happened. */
export interface CommandListener {
  /** The owner has answered. */
  onOpen?(): void;
  /** The connection waits while the returned promise is pending. */
  onOutput(stream: "stdout" | "stderr", bytes: Buffer): Promise<void> | undefined;
  /** The command has ended, and nothing follows. JSON. */
  onEnded(end: string): void;
  /** There is no command, or none any more. JSON. */
  onError(error: string): void;
  /** The connection has ended without either. `cause` is that of a connection that was never made. */
  onLost(cause: NodeJS.ErrnoException | null): void;
}

/**
 * One command in a lasting sandbox, which lasts as long as this connection. It imports as little as possible, because `brig exec --in` loads this file
 * and hardly another one.
 */
export class CommandConnection {
  readonly #socket: Socket;
  readonly #listener: CommandListener;
  readonly #reader: FrameReader;
  #isOpen = false;
  #isOver = false;
  /** How much more input the owner takes. */
  #window = INPUT_WINDOW_BYTES;
  #onRoom: (() => void) | null = null;

  constructor(
    { socketPath, path, command }: { socketPath: string; path: string; command: ConnectedCommand },
    listener: CommandListener & { maxPayloadBytes?: number },
  ) {
    this.#listener = listener;
    this.#reader = new FrameReader(listener.maxPayloadBytes);
    let failure: NodeJS.ErrnoException | null = null;
    const socket = connect(socketPath);
    this.#socket = socket;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      failure = error;
    });
    socket.on("close", () => this.#over(() => listener.onLost(failure)));
    let head = "";
    const takeHead = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!head.startsWith("HTTP/1.1 101 ")) return void socket.destroy();
      this.#isOpen = true;
      listener.onOpen?.();
      socket.off("data", takeHead);
      socket.on("data", (next: Buffer) => this.#take(next));
      this.#take(Buffer.from(head.slice(end + 4), "latin1"));
    };
    socket.on("data", takeHead);
    // The command goes with the request, which saves waiting for the answer.
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: ${EXEC_PROTOCOL}\r\n\r\n`,
    );
    socket.write(encodeFrame(FRAME.start, JSON.stringify(command)));
  }

  /** Whether there was an answer. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends input. Resolves when more may be sent, and when the command has ended. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return;
    this.#window -= bytes.length;
    this.#socket.write(encodeFrame(FRAME.input, bytes));
    while (this.#window <= 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve;
      });
  }

  endInput(): void {
    this.#send(FRAME.inputEnd);
  }

  resize(size: { rows: number; cols: number }): void {
    this.#send(FRAME.resize, JSON.stringify(size));
  }

  signal(name: string): void {
    this.#send(FRAME.signal, name);
  }

  /** Leaves, which ends the command. Resolves when the owner has ended it. */
  async leave(): Promise<void> {
    if (this.#socket.destroyed) return;
    const closed = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.end();
    this.#socket.resume();
    await closed;
  }

  #send(type: number, payload = ""): void {
    if (!this.#isOver) this.#socket.write(encodeFrame(type, payload));
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
    else if (type === FRAME.taken) {
      this.#window += payload.readUInt32BE(0);
      if (this.#window > 0) this.#go();
    }
  }

  #output(stream: "stdout" | "stderr", bytes: Buffer): void {
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
