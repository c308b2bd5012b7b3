import type { Dirent, Stats } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { BrigError, type ErrorCode } from "../../src/errors.js";
import type { ToolFiles } from "../../src/tools/sandbox.js";

const ENTRIES_AT_A_TIME = 100;

const codes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "file.not-found",
  EACCES: "file.not-permitted",
  EPERM: "file.not-permitted",
  EISDIR: "file.is-directory",
  ENOTDIR: "file.not-directory",
};

/** Files of this machine, with the promises and the errors of a sandbox's files. */
export const hostFiles: ToolFiles = {
  read: (path, { offsetBytes, lengthBytes, signal }) =>
    asFileError(path, async () => {
      signal?.throwIfAborted();
      const found = await stat(path);
      if (found.isDirectory()) throw Object.assign(new Error("EISDIR"), { code: "EISDIR" });
      if (!found.isFile())
        throw new BrigError(`cannot read ${path}: it is not a regular file but a ${typeOf(found)}`, {
          code: "file.not-regular",
        });
      await using file = await open(path);
      const buffer = Buffer.alloc(Math.min(lengthBytes, Math.max(found.size - offsetBytes, 0)));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offsetBytes);
      return buffer.subarray(0, bytesRead);
    }),
  stat: (path) =>
    asFileError(path, async () => {
      const found = await stat(path);
      return { type: typeOf(found), sizeBytes: found.size };
    }),
  list: (path, { onEntries }) =>
    asFileError(path, async () => {
      const entries = await readdir(path instanceof Uint8Array ? Buffer.from(path) : path, {
        withFileTypes: true,
        encoding: "buffer",
      });
      for (let at = 0; at < entries.length; at += ENTRIES_AT_A_TIME)
        onEntries(
          entries
            .slice(at, at + ENTRIES_AT_A_TIME)
            .map((entry) => ({ nameBytes: entry.name, type: typeOf(entry) })),
        );
    }),
};

function typeOf(entry: Stats | Dirent<Buffer>): string {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  if (entry.isFIFO()) return "fifo";
  if (entry.isSocket()) return "socket";
  return entry.isCharacterDevice() ? "char-device" : "block-device";
}

async function asFileError<T>(path: string | Uint8Array, action: () => Promise<T>): Promise<T> {
  const text = path instanceof Uint8Array ? Buffer.from(path).toString() : path;
  if (!text.startsWith("/") || text.includes("\0"))
    throw new BrigError(`${JSON.stringify(text)} is not an absolute path`, { code: "file.not-found" });
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof BrigError || !(cause instanceof Error) || !("code" in cause)) throw cause;
    throw new BrigError(`cannot use ${text}`, { code: codes[String(cause.code)] ?? "file.failed", cause });
  }
}
