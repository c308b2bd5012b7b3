import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join, posix } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { TarEntry } from "../../../sandbox/index.js";
import { streamTar } from "../../../sandbox/index.js";
import type { TreeEntry } from "../../tasks/files/task-tree.js";
import type { StoredFile } from "../store/object-store.js";

/** A part of what is packed: listed files below a directory. */
export interface PackedTree {
  root: string;
  /** Path of the entries in the archive; empty for its root. */
  at: string;
  entries: Iterable<TreeEntry>;
}

/** Writes an archive to a file, which must not exist. Equal files give an equal archive. */
export async function pack(
  entries: AsyncIterable<TarEntry>,
  file: string,
  signal?: AbortSignal,
): Promise<StoredFile> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const measured = new Transform({
    transform: (chunk: Buffer, _, done) => {
      hash.update(chunk);
      sizeBytes += chunk.length;
      done(null, chunk);
    },
  });
  // The archive is read soon, over a network that is slower than the first level of compression.
  const gzip = createGzip({ level: 1 });
  await pipeline(streamTar(entries), gzip, measured, createWriteStream(file, { flags: "wx" }), { signal });
  return { path: file, sizeBytes, sha256: hash.digest("hex"), signal };
}

/** The files of a task, as they were listed; what is in several trees once. */
export async function* treeEntries(trees: Iterable<PackedTree>): AsyncGenerator<TarEntry> {
  const seen = new Set<string>();
  for (const { root, at, entries } of trees)
    for (const entry of withRoot(at, entries)) {
      const path = posix.join(at, entry.path);
      if (path === "." || seen.has(path)) continue;
      seen.add(path);
      if (entry.kind === "directory") yield { path, mode: 0o755, kind: "directory" };
      else if (entry.kind === "link") yield { path, mode: 0o777, kind: "link", target: entry.target };
      else
        yield {
          path,
          mode: entry.isExecutable ? 0o755 : 0o644,
          kind: "file",
          sizeBytes: entry.bytes,
          content: () => contentOf(join(root, entry.path), entry.bytes),
        };
    }
}

/** A directory that is empty is there, too. */
function* withRoot(at: string, entries: Iterable<TreeEntry>): Generator<TreeEntry> {
  if (at !== "") yield { kind: "directory", path: "" };
  yield* entries;
}

/** All regular files of a directory. brig writes no others into the folder of an attempt. */
export async function* folderEntries(root: string, below = ""): AsyncGenerator<TarEntry> {
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const path = posix.join(below, entry.name);
    if (entry.isDirectory()) {
      yield { path, mode: 0o755, kind: "directory" };
      yield* folderEntries(root, path);
    } else if (entry.isFile()) {
      const sizeBytes = await sizeOf(join(root, path));
      yield {
        path,
        mode: 0o644,
        kind: "file",
        sizeBytes,
        content: () => contentOf(join(root, path), sizeBytes),
      };
    }
  }
}

async function sizeOf(path: string): Promise<number> {
  const file: FileHandle = await open(path);
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** Reads no more than was announced, even if the file has grown meanwhile. */
async function* contentOf(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  if (sizeBytes > 0) yield* createReadStream(path, { end: sizeBytes - 1 });
}
