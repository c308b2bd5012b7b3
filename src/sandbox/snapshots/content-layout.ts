import { type FileHandle, open } from "node:fs/promises";
import type { ContentPiece } from "../files/extents.js";

/** A part of a file that is no hole. */
export interface Extent {
  offset: number;
  bytes: number;
}

/** The places of the data of a file with holes. The layout is stored behind the data. */
export interface Layout {
  /** The extents in order, with holes between them. */
  extents: readonly Extent[];
  /** The size of the file with its holes. */
  sizeBytes: number;
}

const EXTENT_BYTES = 16;
/** The size of the file and the number of its extents. */
const END_BYTES = 16;

/** Notes where a piece belongs, which comes behind all others. */
export function addExtent(extents: Extent[], { offset, data }: ContentPiece): void {
  const last = extents.at(-1);
  if (last !== undefined && last.offset + last.bytes === offset) last.bytes += data.length;
  else extents.push({ offset, bytes: data.length });
}

export function encodeLayout({ extents, sizeBytes }: Layout): Buffer {
  const bytes = Buffer.alloc(extents.length * EXTENT_BYTES + END_BYTES);
  const numbers = [...extents.flatMap(({ offset, bytes }) => [offset, bytes]), sizeBytes, extents.length];
  for (const [index, number] of numbers.entries()) bytes.writeBigUInt64LE(BigInt(number), index * 8);
  return bytes;
}

/** Reads the layout at the end of a stored content; null if it has none that fits. Errors: the file system's. */
export async function readLayout(path: string): Promise<Layout | null> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const end = await readAt(file, size - END_BYTES, END_BYTES);
    if (end === null) return null;
    const [sizeBytes, count] = [Number(end.readBigUInt64LE(0)), Number(end.readBigUInt64LE(8))];
    const start = size - END_BYTES - count * EXTENT_BYTES;
    const list = await readAt(file, start, count * EXTENT_BYTES);
    return list === null ? null : parseLayout(list, { dataBytes: start, sizeBytes });
  } finally {
    await file.close();
  }
}

function parseLayout(
  list: Buffer,
  { dataBytes, sizeBytes }: { dataBytes: number; sizeBytes: number },
): Layout | null {
  const extents: Extent[] = [];
  let [end, sum] = [0, 0];
  for (let at = 0; at < list.length; at += EXTENT_BYTES) {
    const [offset, bytes] = [Number(list.readBigUInt64LE(at)), Number(list.readBigUInt64LE(at + 8))];
    if (offset < end || bytes === 0) return null;
    extents.push({ offset, bytes });
    end = offset + bytes;
    sum += bytes;
  }
  const isSafe = Number.isSafeInteger(sizeBytes) && end <= sizeBytes;
  return isSafe && sum === dataBytes ? { extents, sizeBytes } : null;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer | null> {
  if (position < 0 || !Number.isSafeInteger(position)) return null;
  const bytes = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await file.read(bytes, read, length - read, position + read);
    if (bytesRead === 0) return null;
    read += bytesRead;
  }
  return bytes;
}

/** Puts stored data back where they belong. The last piece has no bytes, and says the size. */
export async function* piecesOf(
  stored: AsyncIterable<Buffer>,
  { extents, sizeBytes }: Layout,
): AsyncGenerator<ContentPiece> {
  let [index, done] = [0, 0];
  for await (const bytes of stored) {
    for (let at = 0; at < bytes.length; ) {
      const extent = extents[index];
      if (extent === undefined) return;
      const data = bytes.subarray(at, at + extent.bytes - done);
      yield { offset: extent.offset + done, data };
      at += data.length;
      done += data.length;
      if (done === extent.bytes) [index, done] = [index + 1, 0];
    }
  }
  yield { offset: sizeBytes, data: Buffer.alloc(0) };
}
