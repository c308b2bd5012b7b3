import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { BrigError } from "../../../../errors.js";
import { errnoOf } from "../../../../lib/errno.js";
import type { TarEntry } from "../../../../sandbox/index.js";
import { streamTar } from "../../../../sandbox/index.js";
import type { ContextEntry } from "./walk-context.js";

/** The files of a context, and contents that take the place of those on disk, by path. */
export interface ContextFiles {
  directory: string;
  entries: readonly ContextEntry[];
  replaced: ReadonlyMap<string, Buffer>;
}

const pieceBytes = 256 * 1024;

/** Adds paths, modes and contents to the hash, so that no two different contexts give it the same bytes. */
export async function hashContext(files: ContextFiles, signal?: AbortSignal): Promise<Hash> {
  const hash = createHash("sha256");
  for (const entry of files.entries) {
    const detail = entry.kind === "file" ? lengthOf(files, entry) : entry.kind === "link" ? entry.target : "";
    hash.update(JSON.stringify([entry.kind, entry.path, entry.mode, detail]));
    if (entry.kind !== "file") continue;
    for await (const piece of contentOf(files, entry)) {
      signal?.throwIfAborted();
      hash.update(piece);
    }
  }
  return hash;
}

/** A tar stream without owners and times. At no time are more than a few pieces of a file in memory. */
export function packContext(files: ContextFiles): Readable {
  return streamTar(tarEntries(files));
}

function* tarEntries(files: ContextFiles): Iterable<TarEntry> {
  for (const entry of files.entries) {
    if (entry.kind !== "file") yield entry;
    else yield { ...entry, sizeBytes: lengthOf(files, entry), content: () => contentOf(files, entry) };
  }
}

type FileEntry = Extract<ContextEntry, { kind: "file" }>;

function lengthOf({ replaced }: ContextFiles, { path, sizeBytes }: FileEntry): number {
  return replaced.get(path)?.length ?? sizeBytes;
}

async function* contentOf(files: ContextFiles, { path, sizeBytes }: FileEntry): AsyncIterable<Uint8Array> {
  const given = files.replaced.get(path);
  if (given !== undefined) return yield given;
  const absolute = join(files.directory, path);
  const file = await openFile(absolute);
  try {
    let left = sizeBytes;
    while (true) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(pieceBytes, left + 1)));
      if (bytesRead > left || (bytesRead === 0 && left > 0)) throw changed(absolute);
      if (bytesRead === 0) return;
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Neither follows a link nor waits for the writer of a FIFO that has taken the file's place. */
async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    throw new BrigError(`${path} cannot be read: ${errnoOf(cause) ?? "unknown error"}`, {
      code: "image.build-failed",
      hint: "give it to the user who runs brig, or leave it out with a .dockerignore file",
      cause,
    });
  }
}

function changed(path: string): BrigError {
  return new BrigError(`${path} changed while an image was built from it`, {
    code: "image.build-failed",
    hint: "run it again when nothing writes to the build context",
  });
}
