import { once } from "node:events";
import { WebSocket } from "ws";

/** What a program of Node prints on standard error that was started with `--inspect=127.0.0.1:0`. */
export const inspectorLine = /^Debugger listening on (ws:.*)$/;

/** Another process of Node, asked what it holds. */
export class Inspector {
  readonly #socket: WebSocket;
  #askedCount = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async connect(address: string): Promise<Inspector> {
    const socket = new WebSocket(address);
    await once(socket, "open");
    return new Inspector(socket);
  }

  /** The bytes of its objects and buffers, once all garbage is collected. */
  async heldBytes(): Promise<number> {
    // The bytes of a buffer are counted as free only after the collection that found it.
    for (let count = 0; count < 3; count++) await this.#ask("HeapProfiler.collectGarbage", {});
    const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
    const { result } = (await this.#ask("Runtime.evaluate", { expression })) as { result: { value: number } };
    return result.value;
  }

  close(): void {
    this.#socket.terminate();
  }

  async #ask(method: string, params: object): Promise<unknown> {
    const id = ++this.#askedCount;
    const answered = new Promise<unknown>((resolve) => {
      const listen = (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id?: number; result?: unknown };
        if (message.id !== id) return;
        this.#socket.off("message", listen);
        resolve(message.result);
      };
      this.#socket.on("message", listen);
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    return await answered;
  }
}
