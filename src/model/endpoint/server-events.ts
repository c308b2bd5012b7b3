import { LONGEST_TIMER_MS } from "../../lib/time/pause.js";
import { Utf8Stream } from "../../lib/utf8.js";
import { senselessAnswer } from "./model-failure.js";

const MAX_EVENT_CHARS = 64 * 1024 * 1024;
/** Comments and keep-alives that no event comes between. More than the longest event, which comes in one piece after another. */
const MAX_BYTES_WITHOUT_EVENT = 2 * MAX_EVENT_CHARS;
/** How much of a response that says no more is read, so that its connection can be used again. */
const DRAINED_BYTES = 64 * 1024;
const DRAIN_MS = 250;
/** Reading what had already arrived takes less. */
const BACKLOG_MS = 250;
const SILENT = "idle timeout waiting for SSE";

/** The stream ended before its time, by silence or by a broken connection. */
export class BrokenStream extends Error {
  override readonly name = "BrokenStream";
}

/** Nothing that counts came for as long as may be waited. */
export class SilentStream extends BrokenStream {}

/**
 * Reads the data of each server-sent event. One that the stream's end cuts off is dropped. What the bytes are split into makes no
 * difference. The idle timeout is from one event to the next: comments would keep a dead response alive for ever.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  { idleTimeoutMs }: { idleTimeoutMs: number },
): AsyncIterable<string> {
  const decoder = new Utf8Stream();
  const lines = new EventLines();
  const patience = new Patience(idleTimeoutMs);
  let bytesWithoutEvent = 0;
  for await (const bytes of readChunks(body, patience)) {
    bytesWithoutEvent += bytes.length;
    for (const data of lines.push(decoder.push(bytes))) {
      yield data;
      bytesWithoutEvent = 0;
      patience.renew();
    }
    if (patience.isSpent) throw new SilentStream(SILENT);
    if (bytesWithoutEvent > MAX_BYTES_WITHOUT_EVENT)
      throw senselessAnswer("the endpoint sent more than 128 MiB without an event");
  }
}

/** How long the next event may still take. Time that the reader of the events takes for itself is not counted. */
class Patience {
  readonly #idleTimeoutMs: number;
  #deadline: number;
  #seenOverAt: number | null = null;

  constructor(idleTimeoutMs: number) {
    this.#idleTimeoutMs = Math.min(idleTimeoutMs, LONGEST_TIMER_MS);
    this.#deadline = performance.now() + this.#idleTimeoutMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#deadline - performance.now());
  }

  /** A while after it is over: what arrived while the process was suspended is read first. */
  get isSpent(): boolean {
    if (this.leftMs > 0) return false;
    this.#seenOverAt ??= performance.now();
    return performance.now() - this.#seenOverAt > BACKLOG_MS;
  }

  renew(): void {
    this.#seenOverAt = null;
    this.#deadline = performance.now() + this.#idleTimeoutMs;
  }
}

/**
 * Each character is looked at once, however many pieces a line comes in. Not eventsource-parser: it makes an error of each line that it does
 * not know, 3 s of work for 1 MiB of them, which is a way for a hostile endpoint to stop the process.
 */
class EventLines {
  /** Of the line that has no end yet. */
  #pieces: string[] = [];
  #pieceChars = 0;
  /** Of the event that has no end yet. */
  #data: string[] = [];
  #dataChars = 0;
  /** Whether a line feed at the beginning belongs to the line before. */
  #endedInReturn = false;

  *push(text: string): Iterable<string> {
    if (text === "") return;
    let start = this.#endedInReturn && text.startsWith("\n") ? 1 : 0;
    this.#endedInReturn = text.endsWith("\r");
    const lineEnd = /\r\n|[\n\r]/g;
    lineEnd.lastIndex = start;
    for (let found = lineEnd.exec(text); found !== null; found = lineEnd.exec(text)) {
      const data = this.#endLine(text.slice(start, found.index));
      start = lineEnd.lastIndex;
      if (data !== null) yield data;
    }
    this.#keep(text.slice(start));
  }

  /** The data of the event that ends here; null where none does, or one without data. */
  #endLine(rest: string): string | null {
    this.#keep(rest);
    const line = this.#pieces.join("");
    this.#pieces = [];
    this.#pieceChars = 0;
    if (line === "") {
      const data = this.#data.join("\n");
      this.#data = [];
      this.#dataChars = 0;
      return data === "" ? null : data;
    }
    if (line.startsWith("data:")) {
      this.#data.push(line.slice(line.startsWith("data: ") ? "data: ".length : "data:".length));
      this.#dataChars += line.length;
    }
    return null;
  }

  #keep(piece: string): void {
    if (piece !== "") this.#pieces.push(piece);
    this.#pieceChars += piece.length;
    if (this.#pieceChars + this.#dataChars > MAX_EVENT_CHARS)
      throw senselessAnswer("the endpoint sent an event of more than 64 MiB");
  }
}

async function* readChunks(body: ReadableStream<Uint8Array>, patience: Patience): AsyncIterable<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await beforeIdle(reader.read(), patience.leftMs);
      if (done) return;
      yield value;
    }
  } finally {
    // Not awaited: a peer that went silent would hold us here.
    void drain(reader);
  }
}

/** Reads the little that is left. A connection whose response goes on is given up. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const deadline = setTimeout(() => {
    reader.cancel().catch(() => undefined);
  }, DRAIN_MS);
  try {
    for (let left = DRAINED_BYTES; left > 0; ) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.length;
    }
    await reader.cancel();
  } catch {
    // It broke: there is nothing to use again.
  } finally {
    clearTimeout(deadline);
  }
}

async function beforeIdle<T>(reading: Promise<T>, leftMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const idle = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      // What arrived while the process was busy or suspended is read first.
      setImmediate(() => {
        reject(new SilentStream(SILENT));
      });
    }, leftMs);
  });
  const read = reading.catch((cause: unknown) => {
    throw new BrokenStream("the connection broke off", { cause });
  });
  try {
    return await Promise.race([read, idle]);
  } finally {
    clearTimeout(timer);
  }
}
