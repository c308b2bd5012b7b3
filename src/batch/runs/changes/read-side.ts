import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { buffer } from "node:stream/consumers";
import { readStart } from "../../../lib/bounded-file.js";
import type { Engine, PatchSide, ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";

/** A longer file is only named. */
const MAX_FILE_BYTES = 1024 * 1024;

export type FoundSide =
  | { kind: "none" }
  | { kind: "directory" }
  /** A device, FIFO or socket, which a patch cannot show. */
  | { kind: "other" }
  | { kind: "too-large"; sizeBytes: number }
  | { kind: "side"; side: PatchSide };

/** One file of a container that does not run. */
export async function sideInContainer(
  { engine, id }: { engine: Pick<Engine, "readArchive">; id: string },
  path: string,
  signal: AbortSignal | undefined,
): Promise<FoundSide> {
  const archive = await engine.readArchive(id, path, signal && { signal });
  if (archive === null) return { kind: "none" };
  for await (const entry of readTar(archive)) return await sideOf(entry);
  return { kind: "none" };
}

/** All that is in a directory of a container that does not run, by its paths in it; at most `limit`. */
export async function sidesBelow(
  { engine, id }: { engine: Pick<Engine, "readArchive">; id: string },
  path: string,
  { limit, signal }: { limit: number; signal: AbortSignal | undefined },
): Promise<Map<string, FoundSide>> {
  const sides = new Map<string, FoundSide>();
  const archive = await engine.readArchive(id, path, signal && { signal });
  if (archive === null) return sides;
  for await (const entry of readTar(archive)) {
    if (sides.size >= limit) break;
    const inside = posix.join(posix.dirname(path), entry.path).replace(/\/$/, "");
    sides.set(inside, await sideOf(entry));
  }
  return sides;
}

async function sideOf({ kind, sizeBytes, mode, target, content }: ReceivedEntry): Promise<FoundSide> {
  if (kind === "directory") return { kind };
  if (kind === "symbolic-link") return { kind: "side", side: linkSide(Buffer.from(target ?? "")) };
  if (kind !== "file") return { kind: "other" };
  if (sizeBytes > MAX_FILE_BYTES) return { kind: "too-large", sizeBytes };
  return { kind: "side", side: { gitMode: gitModeOf(mode), content: await buffer(content) } };
}

/** A file of the host that was copied to the container; "none" if there is no such file. */
export async function sideOnHost(path: string): Promise<FoundSide> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return { kind: "none" };
  if (found.isDirectory()) return { kind: "directory" };
  if (found.isSymbolicLink())
    return { kind: "side", side: linkSide(await readlink(path, { encoding: "buffer" })) };
  if (!found.isFile()) return { kind: "other" };
  if (found.size > MAX_FILE_BYTES) return { kind: "too-large", sizeBytes: found.size };
  const file = await open(path, "r");
  try {
    const content = await readStart(file, MAX_FILE_BYTES);
    return { kind: "side", side: { gitMode: gitModeOf(found.mode), content } };
  } finally {
    await file.close();
  }
}

/** The files below a directory of the host, relative to it. */
export async function* filesOnHost(directory: string, below = ""): AsyncGenerator<string> {
  for (const entry of await readdir(join(directory, below), { withFileTypes: true })) {
    const path = posix.join(below, entry.name);
    if (entry.isDirectory()) yield* filesOnHost(directory, path);
    else yield path;
  }
}

function gitModeOf(mode: number): PatchSide["gitMode"] {
  return (mode & 0o100) === 0 ? "100644" : "100755";
}

function linkSide(target: Buffer): PatchSide {
  return { gitMode: "120000", content: target };
}
