import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { NeutralStream } from "../../../lib/terminal/terminal.js";
import { fenced } from "./shown-text.js";

/** The shortest time between two updates with output. */
const INTERVAL_MS = 150;
/** Limit for clients without terminals: only this much from the end of an output is shown while its command runs. */
const TAIL_BYTES = 16 * 1024;
/** Limit for clients with terminals: only this much from the start of an output is sent. */
const TERMINAL_BYTES = 1024 * 1024;

interface RunningOutput {
  /** With terminals, the output that has not been sent yet; otherwise the end of the whole output. */
  bytes: Buffer;
  /**
   * With terminals: turns the bytes into text. A character or a control sequence may be split between two
   * pieces.
   */
  stream: NeutralStream;
  sentBytes: number;
  droppedBytes: number;
  hasNews: boolean;
}

export interface CommandOutputsOptions {
  send(update: SessionUpdate): void;
  /** Whether output goes to a terminal that the client draws, piece by piece. */
  usesTerminals: boolean;
}

/**
 * Collects the output of running commands and sends it a few times per second, within limits. Close it to
 * stop its timer.
 */
export class CommandOutputs {
  readonly #options: CommandOutputsOptions;
  readonly #running = new Map<string, RunningOutput>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: CommandOutputsOptions) {
    this.#options = options;
  }

  start(callId: string): void {
    const stream = new NeutralStream({ colours: true });
    this.#running.set(callId, {
      bytes: Buffer.alloc(0),
      stream,
      sentBytes: 0,
      droppedBytes: 0,
      hasNews: false,
    });
  }

  push(callId: string, chunk: Uint8Array): void {
    const output = this.#running.get(callId);
    if (output === undefined) return;
    if (this.#options.usesTerminals) keepStart(output, chunk);
    else keepEnd(output, chunk);
    output.hasNews = true;
    this.#timer ??= setTimeout(() => this.#sendNews(), INTERVAL_MS).unref();
  }

  /**
   * Call this when the command has ended. Sends the rest of its output to a terminal; otherwise the end of the call
   * shows it.
   */
  end(callId: string): void {
    const output = this.#running.get(callId);
    if (output === undefined) return;
    this.#running.delete(callId);
    if (!this.#options.usesTerminals) return;
    const { droppedBytes } = output;
    const note = droppedBytes > 0 ? `\n… ${droppedBytes} more bytes are not shown\n` : "";
    this.#sendPiece(callId, output, { isLast: true, note });
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#running.clear();
  }

  #sendNews(): void {
    this.#timer = null;
    for (const [callId, output] of this.#running) {
      if (!output.hasNews) continue;
      output.hasNews = false;
      if (this.#options.usesTerminals) this.#sendPiece(callId, output);
      else this.#sendTail(callId, output);
    }
  }

  #sendPiece(callId: string, output: RunningOutput, { isLast = false, note = "" } = {}): void {
    const data = output.stream.push(output.bytes) + (isLast ? output.stream.end() : "") + note;
    output.sentBytes += output.bytes.length;
    output.bytes = Buffer.alloc(0);
    if (data === "") return;
    const meta = { terminal_output: { terminal_id: callId, data } };
    this.#options.send({ sessionUpdate: "tool_call_update", toolCallId: callId, _meta: meta });
  }

  #sendTail(callId: string, { bytes, droppedBytes }: RunningOutput): void {
    const note = droppedBytes === 0 ? "" : `… ${droppedBytes} bytes before this\n`;
    const stream = new NeutralStream();
    const text = fenced(note + stream.push(bytes) + stream.end());
    this.#options.send({
      sessionUpdate: "tool_call_update",
      toolCallId: callId,
      content: [{ type: "content", content: { type: "text", text } }],
    });
  }
}

function keepStart(output: RunningOutput, chunk: Uint8Array): void {
  const room = TERMINAL_BYTES - output.sentBytes - output.bytes.length;
  const kept = chunk.subarray(0, Math.max(0, room));
  output.droppedBytes += chunk.length - kept.length;
  if (kept.length > 0) output.bytes = Buffer.concat([output.bytes, kept]);
}

/** Cuts at the start of a line where there is one, so that no character is split. */
function keepEnd(output: RunningOutput, chunk: Uint8Array): void {
  const end = chunk.subarray(-TAIL_BYTES);
  const all = Buffer.concat([output.bytes, end]);
  let kept = all.subarray(-TAIL_BYTES);
  if (kept.length < all.length || end.length < chunk.length) kept = kept.subarray(kept.indexOf(10) + 1);
  output.droppedBytes += output.bytes.length + chunk.length - kept.length;
  output.bytes = kept;
}
