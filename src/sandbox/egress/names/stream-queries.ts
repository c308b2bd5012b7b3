import type { Duplex } from "node:stream";
import { readExactly } from "../read-exactly.js";
import { reset } from "../tunnel/join.js";

const LENGTH_BYTES = 2;

/**
 * Answers DNS queries on a connection (RFC 7766): each has its length before it, and there may be many. The next one
 * is only read once the program has taken the answer.
 */
export async function answerStream(
  stream: Duplex,
  answer: (query: Buffer) => Promise<Buffer | null>,
  { timeoutMs }: { timeoutMs: number },
): Promise<void> {
  for (;;) {
    const length = await readExactly(stream, LENGTH_BYTES, timeoutMs);
    if (length === null) break;
    const query = await readExactly(stream, length.readUInt16BE(), timeoutMs);
    const text = query === null ? null : await answer(query);
    if (text === null) return reset(stream);
    const head = Buffer.alloc(LENGTH_BYTES);
    head.writeUInt16BE(text.length);
    if (!(await isWritten(stream, Buffer.concat([head, text])))) return reset(stream);
  }
  if (stream.readableEnded) stream.end();
  else reset(stream);
}

async function isWritten(stream: Duplex, data: Buffer): Promise<boolean> {
  return await new Promise((resolve) => {
    stream.write(data, (error) => resolve(!error));
  });
}
