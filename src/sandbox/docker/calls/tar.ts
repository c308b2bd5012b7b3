import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, type Header, type Pack, pack } from "tar-stream";

export interface TarFile {
  /** Relative, with slashes. */
  path: string;
  /** Permission bits, e.g. 0o644. */
  mode: number;
  content: Uint8Array;
}

/** An uncompressed tar stream. It has neither times nor owners, so that equal files give equal bytes. */
export function packTar(files: Iterable<TarFile>): Readable {
  const tar = pack();
  for (const { path, mode, content } of files) {
    tar.entry({ name: path, mode, mtime: new Date(0), uid: 0, gid: 0 }, Buffer.from(content));
  }
  tar.finalize();
  return Readable.from(tar);
}

export type TarEntry = {
  /** Relative, with slashes. */
  path: string;
  mode: number;
  /** Default: root. */
  owner?: { uid: number; gid: number } | undefined;
  /** Default: 1970. */
  modifiedAt?: Date | undefined;
} & (
  | { kind: "file"; sizeBytes: number; content: () => AsyncIterable<Uint8Array> }
  | { kind: "directory" }
  | { kind: "link"; target: string }
);

/**
 * The same for entries that need not fit into memory: each file is read when the reader of the stream gets to it. An
 * error of a file's content ends the stream.
 */
export function streamTar(entries: Iterable<TarEntry> | AsyncIterable<TarEntry>): Readable {
  return Readable.from(packed(entries));
}

const BLOCK_BYTES = 512;

/** About how long the archive of these entries is, whose contents are not read: longer names take a little more. */
export async function tarBytes(entries: AsyncIterable<TarEntry>): Promise<number> {
  let blocks = 2;
  for await (const entry of entries)
    blocks += 1 + (entry.kind === "file" ? Math.ceil(entry.sizeBytes / BLOCK_BYTES) : 0);
  return blocks * BLOCK_BYTES;
}

/** Takes the first entry when somebody reads, so that a failure does not come before anybody listens. */
async function* packed(entries: Iterable<TarEntry> | AsyncIterable<TarEntry>): AsyncGenerator<Uint8Array> {
  const tar = pack();
  // The loop over the archive throws it.
  tar.on("error", () => undefined);
  packEntries(tar, entries).catch((error: Error) => tar.destroy(error));
  yield* tar as AsyncIterable<Uint8Array>;
}

async function packEntries(tar: Pack, entries: Iterable<TarEntry> | AsyncIterable<TarEntry>): Promise<void> {
  for await (const entry of entries) {
    if (tar.destroyed) return;
    const header: Headers = {
      name: entry.path,
      mode: entry.mode,
      mtime: entry.modifiedAt ?? new Date(0),
      uid: entry.owner?.uid ?? 0,
      gid: entry.owner?.gid ?? 0,
    };
    if (entry.kind === "directory") tar.entry({ ...header, type: "directory" });
    else if (entry.kind === "link") tar.entry({ ...header, type: "symlink", linkname: entry.target });
    else await packFile(tar, { ...header, size: entry.sizeBytes }, entry.content());
  }
  tar.finalize();
}

type Headers = Pick<Header, "name"> & Partial<Header>;

/** Resolves when the reader of the archive has taken all but a little of it. */
async function packFile(tar: Pack, header: Headers, content: AsyncIterable<Uint8Array>): Promise<void> {
  const source = Readable.from(content, { objectMode: false });
  try {
    await new Promise<void>((resolve, reject) => {
      const sink = tar.entry(header, (error) => (error ? reject(error) : resolve()));
      sink.on("error", reject);
      source.on("error", (error) => sink.destroy(error)).pipe(sink);
    });
  } finally {
    source.destroy();
  }
}

/** Reads one regular file of a gzipped tar archive. Throws if the archive lacks it. */
export async function readTarFile(archive: string, path: string): Promise<Buffer> {
  const entries = extract();
  const fed = pipeline(createReadStream(archive), createGunzip(), entries);
  // The loop over the entries throws it.
  fed.catch(() => undefined);
  for await (const entry of entries) {
    if (entry.header.name === path && entry.header.type === "file") return await buffer(entry);
    entry.resume();
  }
  throw new Error(`${archive} contains no file ${path}`);
}

/** An entry of a tar stream that somebody else made. Nothing about it has been checked. */
export interface ReceivedEntry {
  kind: "file" | "directory" | "symbolic-link" | "hard-link" | "special";
  /** The path as it is written in the archive. */
  path: string;
  /** The target of a link; null for everything else. */
  target: string | null;
  sizeBytes: number;
  mode: number;
  uid: number;
  gid: number;
  modifiedAt: Date;
  /** Read it to its end or not at all: breaking off in the middle ends the whole stream. */
  content: AsyncIterable<Uint8Array>;
}

/**
 * Reads a tar stream entry by entry. Leaving the loop early ends the stream, so that the rest need not arrive.
 * Throws for what is no tar stream, and for a stream that breaks off.
 */
export async function* readTar(tar: Readable): AsyncGenerator<ReceivedEntry> {
  const entries = extract();
  const fed = pipeline(tar, entries);
  fed.catch(() => undefined);
  try {
    for await (const entry of entries) {
      yield { ...asEntry(entry.header), content: entry as AsyncIterable<Uint8Array> };
      entry.resume();
    }
    await fed;
  } finally {
    tar.destroy();
    entries.destroy();
  }
}

const entryKinds: Partial<Record<NonNullable<Header["type"]>, ReceivedEntry["kind"]>> = {
  file: "file",
  "contiguous-file": "file",
  directory: "directory",
  symlink: "symbolic-link",
  link: "hard-link",
};

function asEntry({
  name,
  type,
  linkname,
  size,
  mode,
  uid,
  gid,
  mtime,
}: Header): Omit<ReceivedEntry, "content"> {
  return {
    kind: entryKinds[type ?? "file"] ?? "special",
    path: name,
    target: linkname ?? null,
    sizeBytes: size ?? 0,
    mode: (mode ?? 0) & 0o7777,
    uid: uid ?? 0,
    gid: gid ?? 0,
    modifiedAt: mtime ?? new Date(0),
  };
}
