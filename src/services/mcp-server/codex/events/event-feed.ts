/** Sends a notification; resolves when the client has room for the next one. */
export type Notify = (method: string, params: Record<string, unknown>) => Promise<void>;

interface Waiting {
  method: string;
  params: Record<string, unknown>;
  bytes: number;
}

/** If more than this waits for a client that does not read, pieces of output and text are no longer added. */
const MAX_PIECES_BYTES = 4 * 1024 * 1024;
/** If more than this waits, nothing is added any more. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Sends the notifications of one call one after the other, while the turn goes on. */
export class EventFeed {
  readonly #notify: Notify;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #isSending = false;
  #sending: Promise<void> = Promise.resolve();

  constructor(notify: Notify) {
    this.#notify = notify;
  }

  /** `isPiece`: the notification has a piece of an output or a text that is later sent as a whole. */
  push(
    method: string,
    params: Record<string, unknown>,
    { isPiece = false }: { isPiece?: boolean } = {},
  ): void {
    const bytes = JSON.stringify(params).length;
    if (this.#bytes + bytes > (isPiece ? MAX_PIECES_BYTES : MAX_WAITING_BYTES)) return;
    this.#bytes += bytes;
    this.#waiting.push({ method, params, bytes });
    if (this.#isSending) return;
    this.#isSending = true;
    this.#sending = this.#send();
  }

  /** Resolves when everything has been sent. */
  async flush(): Promise<void> {
    while (this.#isSending) await this.#sending;
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#notify(next.method, next.params);
      } catch {
        // Sending failed because the client is gone. Its turn is ended elsewhere.
      }
      this.#bytes -= next.bytes;
    }
    this.#isSending = false;
  }
}
