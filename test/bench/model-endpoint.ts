import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** What one client did that was given a number of calls to make. */
export interface Visit {
  /** By `performance.now()`. */
  firstRequestAt: number;
  /** From the last byte of each answer to the first of the next request, in milliseconds: all that the client does in between. */
  gapsMs: number[];
}

/** Speaks the Responses API and answers at once: in each turn so many calls of `true`, then a text. One client at a time. */
export class ModelEndpoint {
  readonly #server: Server;
  #calls = 0;
  #turns = 1;
  #requests = 0;
  #answeredAt: number | null = null;
  #visit: Visit = { firstRequestAt: Number.NaN, gapsMs: [] };

  constructor() {
    this.#server = createServer((request, response) => {
      const arrivedAt = performance.now();
      request.resume();
      request.once("end", () => {
        if (!request.url?.endsWith("/responses")) {
          response.writeHead(404).end("{}");
          return;
        }
        this.#note(arrivedAt);
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(answer(this.#requests, this.#requests % (this.#calls + 1) !== 0));
        this.#answeredAt = performance.now();
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }

  /** From now on a new client is answered, with so many calls in each turn. */
  expect(calls: number, turns = 1): void {
    this.#calls = calls;
    this.#turns = turns;
    this.#requests = 0;
    this.#answeredAt = null;
    this.#visit = { firstRequestAt: Number.NaN, gapsMs: [] };
  }

  /** Of the client that has gone; one that did not make every call must not count. */
  visit(): Visit {
    const expected = this.#turns * (this.#calls + 1);
    if (this.#requests !== expected)
      throw new Error(`${this.#requests} requests came, ${expected} were expected`);
    return this.#visit;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #note(arrivedAt: number): void {
    this.#requests++;
    if (this.#answeredAt === null) this.#visit.firstRequestAt = arrivedAt;
    else this.#visit.gapsMs.push(arrivedAt - this.#answeredAt);
  }
}

function answer(request: number, calls: boolean): string {
  const item = calls
    ? {
        type: "function_call",
        name: "exec_command",
        arguments: JSON.stringify({ cmd: "true", login: false }),
        call_id: `call_${request}`,
      }
    : { type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] };
  const usage = { input_tokens: 10, output_tokens: 1, total_tokens: 11 };
  return [
    { type: "response.created", response: { id: `resp_${request}` } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { id: `resp_${request}`, usage } },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}
