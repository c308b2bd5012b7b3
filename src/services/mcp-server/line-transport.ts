import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
  type Transport,
} from "@modelcontextprotocol/server";
import { LineReader } from "../../lib/line-reader.js";
import { PacedOutput } from "../../lib/paced-output.js";
import { ErrorCode, parseMessage } from "./incoming-message.js";
import { MAX_MESSAGE_BYTES, MAX_UNANSWERED, MAX_UNANSWERED_BYTES } from "./served-client.js";

/** How long requests that have arrived may still take after the end of the input. */
const END_GRACE_MS = 1000;

/**
 * Exchanges messages over two streams, one message per line. Stops reading while the client leaves its output
 * unread.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /**
   * Resolves when the client is gone: its input has ended, it no longer reads, or it has sent too long a
   * line.
   */
  readonly ended: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #paced: PacedOutput;
  /** The length of each request that waits for its answer. */
  readonly #unanswered = new Map<RequestId, number>();
  #unansweredBytes = 0;
  readonly #end = new AbortController();
  #initializing: RequestId | undefined;
  #isInitialized = false;
  #onAnswered: (() => void) | undefined;

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
    this.#paced = new PacedOutput(output, this.#end.signal);
    this.ended = once(this.#end.signal, "abort").then(() => undefined);
  }

  async start(): Promise<void> {
    this.#output.on("error", () => this.#end.abort());
    this.#end.signal.addEventListener("abort", () => this.#input.destroy(), { once: true });
    void this.#read().finally(() => this.#end.abort());
  }

  /** Resolves when there is room for the next message, or nobody reads any more. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCResponse(message)) this.#settle(message);
    await this.#write(message);
  }

  async close(): Promise<void> {
    this.#end.abort();
    this.onclose?.();
  }

  async #read(): Promise<void> {
    const lines = new LineReader(MAX_MESSAGE_BYTES);
    try {
      for await (const chunk of this.#input)
        for (const line of lines.push(chunk)) {
          // One message is lost, and later ones may depend on it.
          if (line.kind === "too-long")
            return await this.#refuse(`a message may have at most ${MAX_MESSAGE_BYTES} bytes`);
          await this.#receive(line.text);
        }
      await this.#answered();
    } catch (error) {
      if (!this.#end.signal.aborted) this.onerror?.(error as Error);
    }
  }

  async #receive(text: string): Promise<void> {
    const incoming = parseMessage(text);
    if (incoming.kind === "invalid") return await this.#refuse(incoming.reason, incoming);
    const { message } = incoming;
    if (isJSONRPCRequest(message)) {
      const reason = this.#refusalOf(message, text.length);
      if (reason !== null) return await this.#refuse(reason, message);
      this.#unanswered.set(message.id, text.length);
      this.#unansweredBytes += text.length;
      if (message.method === "initialize") this.#initializing = message.id;
    } else if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
      // A cancelled request is not answered.
      this.#settle({ id: message.params?.requestId as RequestId | undefined });
    }
    this.onmessage?.(message);
    await this.#paced.room();
  }

  #refusalOf({ id, method }: JSONRPCRequest, length: number): string | null {
    if (this.#unanswered.has(id)) return "a request with this id waits for its answer already";
    if (method === "initialize" && (this.#isInitialized || this.#initializing !== undefined))
      return "initialize may be sent only once per connection";
    if (this.#unanswered.size >= MAX_UNANSWERED)
      return `${MAX_UNANSWERED} requests wait for their answers already`;
    if (this.#unansweredBytes + length > MAX_UNANSWERED_BYTES)
      return `requests of more than ${MAX_UNANSWERED_BYTES} bytes would wait for their answers`;
    return null;
  }

  #settle(answer: { id?: RequestId | undefined }): void {
    if (answer.id === undefined) return;
    this.#unansweredBytes -= this.#unanswered.get(answer.id) ?? 0;
    this.#unanswered.delete(answer.id);
    if (answer.id === this.#initializing) {
      this.#initializing = undefined;
      this.#isInitialized ||= isJSONRPCResultResponse(answer);
    }
    if (this.#unanswered.size === 0) this.#onAnswered?.();
  }

  /** Resolves when every request has been answered, and at the latest after `END_GRACE_MS`. */
  async #answered(): Promise<void> {
    if (this.#unanswered.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, END_GRACE_MS);
      this.#onAnswered = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#end.signal.addEventListener("abort", () => this.#onAnswered?.(), { once: true });
    });
  }

  async #refuse(
    reason: string,
    { id = null, code = ErrorCode.invalidRequest }: { id?: RequestId | null; code?: number } = {},
  ): Promise<void> {
    await this.#write({ jsonrpc: "2.0", id, error: { code, message: reason } });
  }

  async #write(message: object): Promise<void> {
    if (this.#end.signal.aborted || this.#output.destroyed) return;
    await this.#paced.write(`${JSON.stringify(message)}\n`);
  }
}
