import type { ServerContext } from "@modelcontextprotocol/server";
import { Utf8Stream } from "../../../lib/utf8.js";

/** The shortest time between two notifications. */
const INTERVAL_MS = 200;
/** If there is more output than this between two notifications, only its end is sent. */
const MAX_TEXT_CHARS = 4096;

/** Sends a command's output to a client that has asked for progress, while the command runs. */
export class OutputProgress implements Disposable {
  readonly #context: ServerContext["mcpReq"];
  readonly #decoder = new Utf8Stream();
  #bytes = 0;
  #text = "";
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(context: ServerContext["mcpReq"]) {
    this.#context = context;
    this.#isOver = context._meta?.progressToken === undefined;
  }

  readonly push = (chunk: Uint8Array): void => {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    this.#text = (this.#text + this.#decoder.push(chunk)).slice(-MAX_TEXT_CHARS);
    this.#timer ??= setTimeout(() => void this.#send(), INTERVAL_MS);
  };

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /**
   * Sends what has come since the last notification, and plans the next one only when the client had room for
   * this one.
   */
  async #send(): Promise<void> {
    const progressToken = this.#context._meta?.progressToken;
    if (progressToken === undefined) return;
    const message = this.#text;
    this.#text = "";
    const params = { progressToken, progress: this.#bytes, message };
    await this.#context.notify({ method: "notifications/progress", params }).catch(() => undefined);
    this.#timer = undefined;
    if (this.#text !== "" && !this.#isOver) this.#timer = setTimeout(() => void this.#send(), INTERVAL_MS);
  }
}
