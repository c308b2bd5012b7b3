import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { errnoOf } from "../../lib/errno.js";

export interface Joined {
  bytesOut: number;
  bytesIn: number;
  /** Null if both sides ended in order. */
  errno: string | null;
}

/**
 * Passes bytes both ways until both sides have ended. The end of one side ends only the direction that it sent in;
 * a broken side breaks the other one. What comes from outside passes through the transforms, which never fail.
 */
export async function join(
  inside: Duplex,
  outside: Duplex,
  through: readonly Duplex[] = [],
): Promise<Joined> {
  const joined: Joined = { bytesOut: 0, bytesIn: 0, errno: null };
  inside.on("data", (chunk: Buffer) => {
    joined.bytesOut += chunk.length;
  });
  outside.on("data", (chunk: Buffer) => {
    joined.bytesIn += chunk.length;
  });
  const fail = (error: unknown) => {
    joined.errno ??= errnoOrIo(error);
  };
  inside.on("error", fail);
  outside.on("error", fail);
  inside.pipe(outside);
  [...through, inside].reduce((from: Duplex, to) => from.pipe(to), outside);
  await Promise.race([closed(inside), closed(outside)]);
  // A side that is closed although the other one has not ended was broken.
  const isWhole = [inside, outside].every((side) => side.readableEnded && side.writableFinished);
  if (!isWhole) joined.errno ??= "ECONNRESET";
  if (joined.errno !== null) {
    reset(inside);
    reset(outside);
  }
  await Promise.all([closed(inside), closed(outside)]);
  return joined;
}

function closed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.once("close", () => resolve());
  });
}

/** Ends a connection so that the other end learns that it is not a proper end. */
export function reset(stream: Duplex): void {
  if (stream.destroyed) return;
  // A socket that is just ending cannot be reset (EINVAL), and Node would then never close it. TLS cannot be reset either.
  const canBeReset = stream instanceof Socket && !(stream instanceof TLSSocket) && !stream.writableEnded;
  if (canBeReset) stream.resetAndDestroy();
  else stream.destroy();
}

/** Drops what still comes in a stream that is ending, and closes it a second after its own end. */
export function dropRest(stream: Duplex): void {
  stream.once("finish", () => setTimeout(() => reset(stream), 1000).unref());
  stream.resume();
}

export function errnoOrIo(error: unknown): string {
  return errnoOf(error) ?? "EIO";
}
