import { posix } from "node:path";
import type { z } from "zod";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { MemoryShare } from "../http/memory-budget.js";
import {
  type EntryList,
  MAX_ENTRIES,
  MAX_FILE_BYTES,
  type readFileSchema,
  type removeFileSchema,
  type writeFileSchema,
} from "../wire/sandbox-schemas.js";
import type { InUse } from "./served-sandbox.js";

/** What is read is for a moment both in pieces and whole. */
const READ_COPIES = 2;
/** Of one entry of a directory: its name, its bytes in base64, and what is around them. */
const ENTRY_BYTES = 1024;

/**
 * Errors: `file.*`; `file.too-large` for more than one answer may have; a refusal with 429 if there is no memory for
 * what would be read.
 */
export async function readFile(
  { path, offset = 0, length }: z.output<typeof readFileSchema>,
  { sandbox, signal }: InUse,
  memory: MemoryShare,
): Promise<Uint8Array> {
  const { sizeBytes } = await sandbox.files.stat(path, { followSymlinks: true, signal });
  // A file of the kernel's has any size, and says 0.
  const leftBytes = sizeBytes === 0 ? MAX_FILE_BYTES : Math.max(0, sizeBytes - offset);
  const wantedBytes = Math.min(length ?? MAX_FILE_BYTES, MAX_FILE_BYTES, leftBytes);
  memory.take(READ_COPIES * wantedBytes);
  const bytes =
    length === undefined
      ? await sandbox.files.read(path, { offsetBytes: offset, maxBytes: MAX_FILE_BYTES, signal })
      : await sandbox.files.read(path, { offsetBytes: offset, lengthBytes: length, signal });
  memory.giveBackTo(bytes.length);
  // It has grown meanwhile.
  memory.take(Math.max(0, bytes.length - memory.takenBytes));
  return bytes;
}

/** Errors: `file.*`. */
export async function writeFile(
  { path, mode, parents, data }: z.output<typeof writeFileSchema> & { data: Uint8Array },
  { sandbox, signal }: InUse,
): Promise<void> {
  if (parents === "true") await sandbox.files.mkdir(posix.dirname(path), { recursive: true, signal });
  await sandbox.files.write(path, data, {
    signal,
    ...(mode !== undefined && { mode: Number.parseInt(mode, 8) }),
  });
}

/** Errors: `file.*`. */
export async function removeFile(
  { path, recursive, force }: z.output<typeof removeFileSchema>,
  { sandbox, signal }: InUse,
): Promise<void> {
  await sandbox.files.remove(path, { recursive: recursive === "true", force: force === "true", signal });
}

/** A directory may have any number of entries, so only so many are listed. Errors: `file.*`; a refusal with 429. */
export async function listEntries(
  path: string,
  { sandbox, signal }: InUse,
  memory: MemoryShare,
): Promise<EntryList> {
  const entries: EntryList["entries"] = [];
  let truncated = false;
  const enough = new AbortController();
  using either = new AnySignal([signal, enough.signal]);
  try {
    await sandbox.files.list(path, {
      signal: either.signal,
      onEntries(more) {
        const room = MAX_ENTRIES - entries.length;
        memory.take(Math.min(room, more.length) * ENTRY_BYTES);
        for (const { name, nameBytes, type } of more.slice(0, room))
          entries.push({ name, nameBase64: Buffer.from(nameBytes).toString("base64"), type });
        if (more.length <= room) return;
        truncated = true;
        enough.abort();
      },
    });
  } catch (error) {
    if (!truncated || signal.aborted) throw error;
  }
  return { entries, truncated };
}
