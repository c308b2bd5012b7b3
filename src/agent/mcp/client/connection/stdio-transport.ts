import { setTimeout as wait } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { formatBytes } from "../../../../lib/bytes.js";
import { isTooDeep } from "../../../../lib/json/nesting.js";
import { parseJson } from "../../../../lib/json/parse-json.js";
import { LineReader } from "../../../../lib/line-reader.js";
import { PacedOutput } from "../../../../lib/paced-output.js";
import { neutraliseLine } from "../../../../lib/terminal/terminal.js";
import { clipped } from "../../../../sandbox/index.js";
import type { ServerExit, ServerProcess } from "../server-process.js";

/** The longest message that a server may send. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** If more than this waits to be read by the server, the server is taken to read nothing any more. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** How many lines in a row may be no messages. Some servers write their log to stdout. */
const MAX_OTHER_LINES = 1000;
/**
 * How many messages may be in one line, which protocol revision 2025-03-26 allows. Handling them blocks
 * everything else.
 */
const MAX_BATCH = 100;
/** How long a server may take to exit after its standard input was closed. */
const GRACE_MS = 2000;
/**
 * How long to wait for the rest of the output when the server has exited, and for its exit when the output
 * has ended.
 */
const LAST_OUTPUT_MS = 1000;
const internalError = -32603;
/** Exit codes with which a shell or `env` reports that it could not start a program. */
const notFound = [126, 127];

export interface StdioTransportOptions {
  /** Receives the end of a sentence that begins with the server's name. */
  onWarning: (text: string) => void;
}

/** Exchanges messages with the process of a server. Each message is a line of its stdin or stdout. */
export class StdioTransport implements Transport {
  // The SDK recognises a process by these two fields. It then takes a server that does not answer the first
  // question for an older one. Over HTTP, silence would count as a failure.
  readonly stderr = null;
  readonly pid = null;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];

  readonly #process: ServerProcess;
  readonly #stderrEnded: Promise<void>;
  readonly #onWarning: (text: string) => void;
  readonly #ended = new AbortController();
  readonly #input: PacedOutput;
  #endReason = "";
  #isClosed = false;
  #exit: ServerExit | null = null;
  #otherLines = 0;
  #hasWarned = false;
  #closing: Promise<void> | undefined;

  constructor(process: ServerProcess, { onWarning }: StdioTransportOptions) {
    this.#process = process;
    this.#input = new PacedOutput(process.stdin, this.#ended.signal);
    this.#onWarning = onWarning;
    process.stdin.on("error", () => void this.#endAfterExit("it closed its standard input"));
    process.stdout.on("error", () => undefined);
    this.#stderrEnded = new Promise((resolve) => process.stderr.once("end", resolve).once("close", resolve));
    void process.exited.then((exit) => {
      this.#exit = exit;
    });
  }

  /**
   * Why the connection ended, as the end of a sentence that begins with the server's name; null while it is
   * open.
   */
  get endReason(): string | null {
    return this.#ended.signal.aborted ? this.#endReason : null;
  }

  /** The same, but null if `close` ended the connection and not the server. */
  get fault(): string | null {
    return this.#isClosed ? null : this.endReason;
  }

  /**
   * Whether the program ran and has exited. Older servers do that when they get a message that they do not
   * know.
   */
  get mayBeOld(): boolean {
    return this.#exit !== null && !notFound.includes(this.#exit.exitCode ?? 0);
  }

  /** Aborts when the connection has ended. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  async start(): Promise<void> {
    void this.#read();
    void this.#process.exited.then(async () => {
      // Its last output may not have arrived yet.
      await wait(LAST_OUTPUT_MS, undefined, { signal: this.#ended.signal, ref: false }).catch(
        () => undefined,
      );
      this.#end(this.#exitInWords());
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.endReason !== null) throw new Error(this.endReason);
    const { stdin } = this.#process;
    if (stdin.writableLength > MAX_UNREAD_BYTES) this.#end("it does not read its standard input");
    else await this.#input.write(`${JSON.stringify(message)}\n`);
    if (this.endReason !== null) throw new Error(this.endReason);
  }

  /** Ends the process: first by closing its standard input, then by force. */
  async close(): Promise<void> {
    this.#isClosed ||= !this.#ended.signal.aborted;
    this.#end("its connection was closed");
    await this.#closing;
  }

  async #read(): Promise<void> {
    const lines = new LineReader(MAX_MESSAGE_BYTES);
    try {
      for await (const chunk of this.#process.stdout)
        for (const line of lines.push(chunk)) {
          if (this.#ended.signal.aborted) return;
          if (line.kind === "line") this.#receive(line.text);
          else this.#end(`it sent a message of more than ${formatBytes(MAX_MESSAGE_BYTES)}`);
          // The SDK handles answers at once, but notifications a moment later. Without this pause, the answer
          // to a call would be handled before the progress that the server reported first.
          await undefined;
        }
    } catch {
      // A broken stream is treated like one that has ended.
    }
    await this.#endAfterExit("it closed its standard output");
  }

  #receive(line: string): void {
    const message = parseJson(line);
    const messages = Array.isArray(message) ? message : [message];
    if (messages.length > MAX_BATCH || !messages.every(isMessage)) {
      this.#receiveOther(line);
      return;
    }
    this.#otherLines = 0;
    for (const one of messages) this.onmessage?.(isTooDeep(one) ? refused(one) : one);
  }

  #receiveOther(line: string): void {
    this.#otherLines += 1;
    if (this.#otherLines > MAX_OTHER_LINES)
      this.#end(`it wrote ${MAX_OTHER_LINES} lines to its standard output that are no messages of MCP`);
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const shown = clipped(neutraliseLine(line.slice(0, 1000)), 200);
    this.#onWarning(`writes lines to its standard output that are no messages of MCP, such as: ${shown}`);
  }

  /**
   * Ends the connection. If the process exits within a moment, its exit is given as the reason, since that
   * says more; and what it wrote last to stderr can still arrive.
   */
  async #endAfterExit(reason: string): Promise<void> {
    const { signal } = this.#ended;
    const over = wait(LAST_OUTPUT_MS, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([Promise.all([this.#process.exited, this.#stderrEnded]), over]);
    this.#end(this.#exit === null ? reason : this.#exitInWords());
  }

  #exitInWords(): string {
    const { exitCode = null, signal = null, reason } = this.#exit ?? {};
    const how = signal === null ? `exited with code ${exitCode ?? "unknown"}` : `was ended by ${signal}`;
    return `it ${how}${reason === undefined ? "" : ` (${reason})`}`;
  }

  #end(reason: string): void {
    if (this.#ended.signal.aborted) return;
    this.#endReason = reason;
    this.#closing = this.#endProcess();
    this.#ended.abort();
    this.onclose?.();
  }

  async #endProcess(): Promise<void> {
    const { stdin, stdout, exited } = this.#process;
    // Discards further output: a server that waits for somebody to read it would not exit.
    stdout.resume();
    stdin.end();
    const over = new AbortController();
    const grace = wait(GRACE_MS, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([exited, grace]);
    over.abort();
    await this.#process.kill();
    stdin.destroy();
    stdout.destroy();
    this.#process.stderr.destroy();
  }
}

function isMessage(value: unknown): value is JSONRPCMessage {
  return typeof value === "object" && value !== null && "jsonrpc" in value && value.jsonrpc === "2.0";
}

/**
 * Replaces a message that is nested too deeply to be handled. An answer becomes an error, because a call
 * waits for it; any other message becomes a notification that means nothing.
 */
function refused(message: JSONRPCMessage): JSONRPCMessage {
  const id = "id" in message && !("method" in message) ? message.id : undefined;
  if (typeof id !== "string" && typeof id !== "number")
    return { jsonrpc: "2.0", method: "notifications/too-deep" };
  return { jsonrpc: "2.0", id, error: { code: internalError, message: "the answer is nested too deeply" } };
}
