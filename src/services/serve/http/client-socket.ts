import type { RawData, WebSocket } from "ws";

/** The longest frame that a client may send. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;

/** Why a WebSocket is closed, as the protocol numbers it. */
export const CloseCode = { done: 1000, serviceEnds: 1001, notUnderstood: 1008, failed: 1011 } as const;

export interface ClientSocketOptions {
  /** How long a client may leave what is sent unread. */
  unreadMs: number;
  /** Called for an error that is a fault of brig. */
  onFault: (error: unknown) => void;
}

/** The WebSocket of one client. */
export class ClientSocket {
  readonly #socket: WebSocket;
  readonly #options: ClientSocketOptions;
  readonly #gone = new AbortController();
  #taking: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, options: ClientSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    // A frame that is too long, or bytes that are no frame: the library tells the client, and closes the connection.
    socket.on("error", () => undefined);
    // While nothing is read, only what is sent shows that the client has gone.
    const pinging = setInterval(() => socket.ping(), options.unreadMs / 3);
    socket.once("close", () => {
      clearInterval(pinging);
      this.#end();
    });
  }

  /** Aborted when the connection has ended, or is being closed. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves when there is room for more. Whoever reads nothing for too long is disconnected. Error: the signal's reason. */
  async send(data: Uint8Array | string): Promise<void> {
    this.signal.throwIfAborted();
    const timer = setTimeout(() => this.#socket.terminate(), this.#options.unreadMs);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#socket.send(data, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      this.#end();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls the listener with each frame, with one after the other: what comes meanwhile waits at the client. */
  onFrame(listener: (data: Buffer, isBinary: boolean) => Promise<void>): void {
    let waitingCount = 0;
    this.#socket.on("message", (raw: RawData, isBinary) => {
      const data = bytesOf(raw);
      waitingCount++;
      // Frames that have arrived together still come afterwards, so they are put in order too.
      this.#socket.pause();
      this.#taking = this.#taking
        .then(async () => await listener(data, isBinary))
        .catch((error: unknown) => this.fail(error))
        .finally(() => {
          waitingCount--;
          if (waitingCount === 0) this.#socket.resume();
        });
    });
  }

  /** The client is told why in at most 123 bytes. */
  close(code: number, reason = ""): void {
    this.#end();
    this.#socket.close(code, reason);
  }

  /** Closes the connection because of an error that is a fault of brig, unless it has ended. */
  fail(error: unknown): void {
    if (!this.signal.aborted) this.#options.onFault(error);
    this.close(CloseCode.failed, "the service has a fault");
  }

  #end(): void {
    this.#gone.abort(new Error("the connection has ended"));
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
