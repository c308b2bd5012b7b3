import type { Readable, Writable } from "node:stream";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { z } from "zod";
import { LineReader } from "../../../lib/line-reader.js";
import { PacedOutput } from "../../../lib/paced-output.js";

/** The longest message of a client. Several pictures in base64 fit into it. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** The longest message to a client: what clients that use the SDK read by default. */
const MAX_SENT_CHARS = 8 * 1024 * 1024;
/** Number of a client's requests that may wait for their answers. */
const MAX_UNANSWERED = 256;

/** Limit for the unread output of a client that is still sent error answers. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

const ErrorCodes = { parse: -32_700, invalidRequest: -32_600, internal: -32_603 } as const;

type Id = string | number | null;

const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string().max(1000), z.number(), z.null()]).optional(),
  method: z.string().max(1000).optional(),
});

interface MessageStreamOptions {
  input: Readable;
  output: Writable;
  /** Aborted when the client is gone: writing no longer waits until it reads. */
  signal: AbortSignal;
}

/** A client that sends and reads one message to a line, as the SDK's kind of stream. Ends with the input. */
export function messageStream({ input, output, signal }: MessageStreamOptions): Stream {
  const outgoing = new OutgoingLines(output, signal);
  const incoming = incomingMessages(input, outgoing);
  return {
    readable: new ReadableStream<AnyMessage>({
      async pull(controller) {
        const next = await incoming.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      cancel() {
        input.destroy();
      },
    }),
    writable: new WritableStream<AnyMessage>({ write: (message) => outgoing.send(message) }),
  };
}

async function* incomingMessages(input: Readable, outgoing: OutgoingLines): AsyncGenerator<AnyMessage> {
  const lines = new LineReader(MAX_MESSAGE_BYTES);
  try {
    for await (const chunk of input as AsyncIterable<Buffer>)
      for (const line of lines.push(chunk)) {
        const message =
          line.kind === "line"
            ? readMessage(line.text)
            : refusal(ErrorCodes.invalidRequest, `a message may have at most ${MAX_MESSAGE_BYTES} bytes`);
        if ("refusal" in message) outgoing.refuse(message.refusal);
        else if (outgoing.expects(message)) yield message;
      }
  } catch {
    // An error of the input, such as a broken pipe, ends the stream as the end of the input does.
  }
}

interface Refusal {
  refusal: { id: Id; code: number; message: string };
}

function readMessage(text: string): AnyMessage | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refusal(ErrorCodes.parse, "the message is not JSON");
  }
  if (Array.isArray(value))
    return refusal(ErrorCodes.invalidRequest, "batches of messages are not supported");
  const problem = shapeProblem(value);
  if (problem !== null) return refusal(ErrorCodes.invalidRequest, problem);
  const parsed = envelope.safeParse(value);
  if (!parsed.success) return refusal(ErrorCodes.invalidRequest, "the message is not one of JSON-RPC 2.0");
  const { id, method } = parsed.data;
  if (method === undefined && id === undefined)
    return refusal(ErrorCodes.invalidRequest, "the message has neither a method nor an id");
  return parsed.data as unknown as AnyMessage;
}

function refusal(code: number, message: string): Refusal {
  return { refusal: { id: null, code, message } };
}

/** Writes messages one after the other, and keeps count of unanswered requests in both directions. */
class OutgoingLines {
  readonly #output: Writable;
  readonly #paced: PacedOutput;
  readonly #signal: AbortSignal;
  readonly #asked = new Set<Id>();
  #unanswered = 0;

  constructor(output: Writable, signal: AbortSignal) {
    this.#output = output;
    this.#paced = new PacedOutput(output, signal);
    this.#signal = signal;
  }

  /**
   * Whether the message should go to the SDK. Answers to nothing are dropped, and requests beyond the limit
   * are refused here.
   */
  expects(message: AnyMessage): boolean {
    if (!("method" in message)) return this.#asked.delete(message.id);
    if (!("id" in message)) return true;
    if (this.#unanswered >= MAX_UNANSWERED) {
      const text = `${MAX_UNANSWERED} requests wait for their answers already`;
      this.refuse({ id: message.id, code: ErrorCodes.invalidRequest, message: text });
      return false;
    }
    this.#unanswered++;
    return true;
  }

  /**
   * Answers with an error. Does not wait until the client reads, because brig must go on reading to see the
   * end of the input. A client with too much unread output is sent nothing, so that its refusals do not fill
   * the memory.
   */
  refuse({ id, code, message }: Refusal["refusal"]): void {
    if (this.#signal.aborted || this.#output.writableLength > MAX_UNREAD_BYTES) return;
    this.#output.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`);
  }

  async send(message: AnyMessage): Promise<void> {
    const isAnswer = !("method" in message);
    if (isAnswer) this.#unanswered--;
    else if ("id" in message) this.#asked.add(message.id);
    const text = JSON.stringify(message);
    if (text.length <= MAX_SENT_CHARS) await this.#write(text);
    else if (isAnswer)
      this.refuse({ id: message.id, code: ErrorCodes.internal, message: "the answer is too long" });
  }

  /** Resolves when there is room for the next message, or nobody reads any more. */
  async #write(text: string): Promise<void> {
    if (!this.#signal.aborted) await this.#paced.write(`${text}\n`);
  }
}

/** Deepest nesting of a message. No message of the protocol comes near it. */
const MAX_LEVELS = 64;
/**
 * Number of values that a message may have. No message comes near it, and checking a value takes many times its size in
 * memory.
 */
const MAX_VALUES = 100_000;

/** Says why a JSON value is too deep or too large to be checked as a message; null if it is neither. */
function shapeProblem(value: unknown): string | null {
  let valuesLeft = MAX_VALUES;
  const isDeep = (inner: unknown, levels: number): boolean => {
    valuesLeft--;
    if (valuesLeft < 0 || typeof inner !== "object" || inner === null) return false;
    if (levels === 0) return true;
    for (const key in inner)
      if (isDeep((inner as Record<string, unknown>)[key], levels - 1)) return true;
      else if (valuesLeft < 0) return false;
    return false;
  };
  if (isDeep(value, MAX_LEVELS)) return `the message is nested more than ${MAX_LEVELS} levels deep`;
  return valuesLeft < 0 ? `the message has more than ${MAX_VALUES} values` : null;
}
