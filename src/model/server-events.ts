import { Utf8Stream } from "../lib/utf8.js";

const MAX_EVENT_CHARS = 64 * 1024 * 1024;
const LINE_END = /\r\n|\n|\r(?!$)/;

/** The stream ended before its time, by silence or by a broken connection. */
export class BrokenStream extends Error {
  override readonly name = "BrokenStream";
}

/**
 * Reads a stream of server-sent events whose data is JSON. An event that does not parse is skipped: gateways put pings of
 * their own between a model's events. An event that the stream's end cuts off is dropped.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  { idleTimeoutMs }: { idleTimeoutMs: number },
): AsyncIterable<unknown> {
  const decoder = new Utf8Stream();
  let pending = "";
  let data: string[] = [];
  for await (const bytes of readChunks(body, idleTimeoutMs)) {
    const lines = (pending + decoder.push(bytes)).split(LINE_END);
    pending = lines.pop() ?? "";
    if (pending.length > MAX_EVENT_CHARS) throw new Error("the endpoint sent an event of more than 64 MiB");
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice("data:".length));
      if (line !== "") continue;
      const event = parseEvent(data.join("\n"));
      data = [];
      if (event !== undefined) yield event;
    }
  }
}

async function* readChunks(
  body: ReadableStream<Uint8Array>,
  idleTimeoutMs: number,
): AsyncIterable<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await beforeIdle(reader.read(), idleTimeoutMs);
      if (done) return;
      yield value;
    }
  } finally {
    // Not awaited: a peer that went silent would hold us here. Ends the connection when the reader left early.
    reader.cancel().catch(() => undefined);
  }
}

async function beforeIdle<T>(reading: Promise<T>, idleTimeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const idle = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new BrokenStream("idle timeout waiting for SSE"));
    }, idleTimeoutMs);
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

function parseEvent(data: string): unknown {
  try {
    return data === "" ? undefined : JSON.parse(data);
  } catch {
    return undefined;
  }
}
