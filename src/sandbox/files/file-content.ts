import { once } from "node:events";
import { PassThrough } from "node:stream";
import { AnySignal } from "../../lib/time/any-signal.js";
import { ReadFlag } from "../channel/protocol.js";
import type { CommandContext } from "../process/start-command.js";
import { type ContentPiece, ExtentParser } from "./extents.js";
import { run } from "./file-request.js";

/**
 * Reads the first bytes of a regular file in pieces, without its holes, at the pace of its reader. It ends there even
 * if somebody goes on writing to the file. A symbolic link in the path is an error. The request is made when the first
 * piece is asked for, so that a failure always has a reader who gets it; breaking off ends the request. Errors:
 * `file.*`, also in the middle; the signal's reason.
 */
export async function* fileContent(
  context: CommandContext,
  path: string | Uint8Array,
  { lengthBytes, signal }: { lengthBytes: number; signal?: AbortSignal | undefined },
): AsyncGenerator<ContentPiece> {
  const left = new AbortController();
  using stops = new AnySignal([signal, left.signal]);
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
  const reading = run(context, {
    operation: "read",
    path,
    flags: ReadFlag.extents,
    lengthBytes,
    refuseSymlinks: true,
    signal: stops.signal,
    onOutput: offer,
  }).then(
    () => void content.end(),
    (error: Error) => void content.destroy(error),
  );
  const parser = new ExtentParser();
  try {
    for await (const bytes of content as AsyncIterable<Buffer>) yield* parser.push(bytes);
    parser.end();
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
