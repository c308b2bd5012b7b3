import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { formatBytes } from "./bytes.js";
import { errnoOf } from "./errno.js";

type Unread =
  | { kind: "missing" }
  /** Follows the file's name in a message. */
  | { kind: "unreadable"; reason: string; cause?: unknown };

export type FileStart = { kind: "read"; bytes: Buffer; isLonger: boolean } | Unread;

/** Reads the first bytes of a regular file. Never blocks: a FIFO is refused. */
export async function readFileStart(path: string, maxBytes: number): Promise<FileStart> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (stat.isDirectory()) return { kind: "unreadable", reason: "is a directory" };
    if (!stat.isFile()) return { kind: "unreadable", reason: "is not a regular file" };
    const bytes = await readStart(file, maxBytes + 1);
    return { kind: "read", bytes: bytes.subarray(0, maxBytes), isLonger: bytes.length > maxBytes };
  } catch (cause) {
    const errno = errnoOf(cause) ?? "unknown error";
    if (errno === "ENOENT" || errno === "ENOTDIR") return { kind: "missing" };
    return { kind: "unreadable", reason: `cannot be read: ${errno}`, cause };
  } finally {
    await file?.close();
  }
}

export type FileText = { kind: "text"; text: string } | Unread;

/** Reads a whole regular file. A longer file, and one that is not UTF-8, is unreadable. */
export async function readTextFile(path: string, maxBytes: number): Promise<FileText> {
  const start = await readFileStart(path, maxBytes);
  if (start.kind !== "read") return start;
  if (start.isLonger) return { kind: "unreadable", reason: `is longer than ${formatBytes(maxBytes)}` };
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(start.bytes) };
  } catch (cause) {
    return { kind: "unreadable", reason: "is not UTF-8 text", cause };
  }
}

/** Reads the first bytes of an open file, whatever size it reports. */
export async function readStart(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let left = maxBytes; left > 0; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(left, 64 * 1024)));
    if (bytesRead === 0) break;
    pieces.push(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  return Buffer.concat(pieces);
}
