import type { Readable } from "node:stream";

/** Resolves when a stream of a process has ended; one that it does not have is over at once. */
export async function eachChunk(
  stream: Readable | null,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) onChunk(chunk);
}
