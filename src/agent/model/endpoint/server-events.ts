import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import { withoutMark } from "../../../lib/utf8.js";
import { unusableResponse } from "./model-failure.js";
import { BrokenStream, DamagedStream, SilentStream, wasJson } from "./stream-event.js";

const MAX_EVENT_CHARS = 64 * 1024 * 1024;
/** Mostly for comments and keep-alives. Larger than the longest event, whose bytes count too. */
const MAX_BYTES_WITHOUT_EVENT = 2 * MAX_EVENT_CHARS;
/** How much of the rest of a finished response is read, so that its connection can be used again. */
const DRAINED_BYTES = 64 * 1024;
const DRAIN_MS = 250;
/** Enough to read everything that arrived while the process was suspended. */
const BACKLOG_MS = 250;
const SILENT = "idle timeout waiting for SSE";

/** Lines of these fields and comments, which begin with a colon, are known; only `data` is used. */
const KNOWN_LINE = /^(?:data|event|id|retry)?(?::|$)/;

/**
 * The data of each server-sent event; one that the end of the stream cuts off is dropped. The idle timeout
 * runs from event to event: comments would keep a dead response alive for ever. Errors: `BrokenStream`,
 * `model.failed` for more than fits into the memory.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  { idleTimeoutMs }: { idleTimeoutMs: number },
): AsyncIterable<string> {
  const decoder = new StrictUtf8();
  const lines = new EventLines();
  const deadline = new IdleDeadline(idleTimeoutMs);
  let bytesWithoutEvent = 0;
  for await (const bytes of readChunks(body, deadline)) {
    bytesWithoutEvent += bytes.length;
    for (const data of lines.push(decoder.push(bytes))) {
      yield data;
      bytesWithoutEvent = 0;
      deadline.renew();
    }
    if (deadline.isOver) throw new SilentStream(SILENT);
    if (bytesWithoutEvent > MAX_BYTES_WITHOUT_EVENT)
      throw unusableResponse("the endpoint sent more than 128 MiB without an event");
  }
}

/** Invalid bytes are not replaced: a path with another character in it is another path. */
class StrictUtf8 {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  push(bytes: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes, { stream: true });
    } catch (cause) {
      throw new DamagedStream("the endpoint sent bytes that are not UTF-8", { cause });
    }
  }
}

/** When the next event must arrive. The time that the caller takes for an event does not count. */
class IdleDeadline {
  readonly #idleTimeoutMs: number;
  #deadline: number;
  #firstSeenOverAt: number | null = null;

  constructor(idleTimeoutMs: number) {
    this.#idleTimeoutMs = Math.min(idleTimeoutMs, LONGEST_TIMER_MS);
    this.#deadline = performance.now() + this.#idleTimeoutMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#deadline - performance.now());
  }

  /** Some time after the deadline: data that arrived while the process was suspended is read first. */
  get isOver(): boolean {
    if (this.leftMs > 0) return false;
    this.#firstSeenOverAt ??= performance.now();
    return performance.now() - this.#firstSeenOverAt > BACKLOG_MS;
  }

  renew(): void {
    this.#firstSeenOverAt = null;
    this.#deadline = performance.now() + this.#idleTimeoutMs;
  }
}

/**
 * Looks at each character once, however many pieces a line comes in. Not eventsource-parser: it creates an
 * error for each unknown line, 3 s of work for 1 MiB, so a hostile endpoint could stop the process.
 */
class EventLines {
  #pieces: string[] = [];
  #pieceChars = 0;
  #data: string[] = [];
  #dataChars = 0;
  /** Whether the last piece ended with CR: an LF at the beginning of the next one belongs to it. */
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

  /** The data of the event that ends with this line; null if none does, or if it has no data. */
  #endLine(rest: string): string | null {
    this.#keep(rest);
    const line = withoutMark(this.#pieces.join(""));
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
    } else if (!KNOWN_LINE.test(line) && wasJson(line))
      throw new DamagedStream("the endpoint sent a line that cannot be read");
    return null;
  }

  #keep(piece: string): void {
    if (piece !== "") this.#pieces.push(piece);
    this.#pieceChars += piece.length;
    if (this.#pieceChars + this.#dataChars > MAX_EVENT_CHARS)
      throw unusableResponse("the endpoint sent an event of more than 64 MiB");
  }
}

async function* readChunks(
  body: ReadableStream<Uint8Array>,
  deadline: IdleDeadline,
): AsyncIterable<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await beforeIdle(reader.read(), deadline.leftMs);
      if (done) return;
      yield value;
    }
  } finally {
    // Not awaited: a silent peer would block us here.
    void drain(reader);
  }
}

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
    // The connection is broken.
  } finally {
    clearTimeout(deadline);
  }
}

async function beforeIdle<T>(reading: Promise<T>, leftMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const idle = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      // Data that arrived while the process was busy or suspended is read first.
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
