import { once } from "node:events";
import { PassThrough } from "node:stream";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { CommandContext } from "../process/command.js";
import type { PathOptions } from "../sandbox-types.js";
import { type FileRequest, run } from "./file-request.js";

/**
 * What a file operation gives, in pieces and at the pace of its reader. The request is made when the first piece is asked for, so that a
 * failure always has a reader who gets it; breaking off ends the request. Errors: `file.*`, also in the middle; the signal's reason.
 */
export async function* outputPieces(
  context: CommandContext,
  request: Omit<FileRequest, "onOutput" | "input">,
): AsyncGenerator<Buffer> {
  const left = new AbortController();
  using stops = new AnySignal([request.signal, left.signal]);
  const content = new PassThrough();
  // The loop over the pieces throws it. At this moment the reader may be busy with the piece before.
  content.on("error", () => undefined);
  // Several pieces may wait for the same room.
  let room: Promise<void> | undefined;
  const offer = (data: Buffer) => {
    if (content.write(Buffer.from(data))) return undefined;
    room ??= drained(content).finally(() => {
      room = undefined;
    });
    return room;
  };
  const reading = run(context, { ...request, signal: stops.signal, onOutput: offer }).then(
    () => void content.end(),
    (error: Error) => void content.destroy(error),
  );
  try {
    for await (const bytes of content as AsyncIterable<Buffer>) yield bytes;
  } finally {
    left.abort();
    await reading;
  }
}

/**
 * Resolves when there is room for more, and also when the stream is closed because nobody reads it any more.
 */
async function drained(content: PassThrough): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  const events = ["drain", "close"].map((event) => once(content, event, { signal }));
  await Promise.race(events).catch(() => undefined);
  // Removes the listener of the event that has not come. Otherwise each piece would leave one.
  settled.abort();
  await Promise.allSettled(events);
}

/** Reads a file, or a part of it, that may be larger than the memory. */
export async function* readPieces(
  context: CommandContext,
  path: string,
  {
    offsetBytes = 0,
    lengthBytes,
    refuseSymlinks,
    signal,
  }: PathOptions & { offsetBytes?: number | undefined; lengthBytes?: number | undefined },
): AsyncGenerator<Buffer> {
  if (lengthBytes === 0)
    return void (await run(context, { operation: "stat", path, refuseSymlinks, signal }));
  const wanted = { offsetBytes, lengthBytes: lengthBytes ?? Number.MAX_SAFE_INTEGER };
  yield* outputPieces(context, { operation: "read", path, ...wanted, refuseSymlinks, signal });
}

/** Replaces a file by what comes. If that fails in the middle, the file stays as it is. */
export async function writePieces(
  context: CommandContext,
  path: string,
  {
    content,
    mode = 0o644,
    refuseSymlinks,
    signal,
  }: PathOptions & { content: AsyncIterable<Uint8Array>; mode?: number | undefined },
): Promise<void> {
  await run(context, { operation: "write", path, mode, refuseSymlinks, input: content, signal });
}
