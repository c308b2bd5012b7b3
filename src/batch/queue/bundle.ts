import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { BrigError } from "../../errors.js";
import type { ReceivedEntry, TarEntry } from "../../sandbox/index.js";
import { readTar, streamTar } from "../../sandbox/index.js";
import { hostContent, hostEntry } from "../runs/place/host-entry.js";
import type { TreeEntry } from "../tasks/files.js";
import type { StoredFile } from "./store.js";

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
          content: () => hostContent(join(root, entry.path), entry.bytes),
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
  for (const name of await readdir(join(root, below))) {
    const path = posix.join(below, name);
    const entry = await hostEntry(join(root, path), { path });
    if (entry?.kind === "file") yield { ...entry, mode: 0o644 };
    if (entry?.kind !== "directory") continue;
    yield entry;
    yield* folderEntries(root, path);
  }
}

export interface UnpackOptions {
  /** Exists and is empty. */
  into: string;
  /** Links are made last, so that nothing is written through them. */
  allowsLinks: boolean;
  /** Files at the root of the archive that are returned in place of being written, by name. */
  keeps?: readonly string[] | undefined;
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

const MAX_ENTRIES = 500_000;
const MAX_DEPTH = 100;
/** A file that is returned fits into memory. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;

/** Unpacks an archive. Error: `store.failed` for one that brig does not write so; then some of it may be there. */
export async function unpack(archive: string, options: UnpackOptions): Promise<Map<string, Buffer>> {
  try {
    return await new Unpacking(options).run(archive);
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof BrigError) throw error;
    throw refused(`it cannot be unpacked: ${error instanceof Error ? error.message : error}`, error);
  }
}

class Unpacking {
  readonly #options: UnpackOptions;
  readonly #kept = new Map<string, Buffer>();
  readonly #links: { path: string; target: string }[] = [];
  #bytes = 0;
  #entries = 0;

  constructor(options: UnpackOptions) {
    this.#options = options;
  }

  async run(archive: string): Promise<Map<string, Buffer>> {
    const source = createReadStream(archive);
    const gunzip = createGunzip();
    source.on("error", (error) => gunzip.destroy(error));
    for await (const entry of readTar(source.pipe(gunzip))) {
      this.#options.signal?.throwIfAborted();
      await this.#take(entry);
    }
    for (const { path, target } of this.#links) await symlink(target, path);
    return this.#kept;
  }

  async #take(entry: ReceivedEntry): Promise<void> {
    if (++this.#entries > MAX_ENTRIES) throw refused(`it has more than ${MAX_ENTRIES} files`);
    const path = this.#pathOf(entry.path);
    if (entry.kind === "directory") await mkdir(path, { recursive: true });
    else if (entry.kind === "file") await this.#takeFile(entry, path);
    else if (entry.kind === "symbolic-link" && this.#options.allowsLinks && entry.target !== null) {
      await mkdir(dirname(path), { recursive: true });
      this.#links.push({ path, target: entry.target });
    } else throw refused("it has an entry that is neither a file nor a directory");
  }

  async #takeFile({ path: name, sizeBytes, mode, content }: ReceivedEntry, path: string): Promise<void> {
    this.#bytes += sizeBytes;
    if (this.#bytes > this.#options.maxBytes) throw refused("its files are larger than brig accepts");
    if (this.#options.keeps?.includes(name)) {
      if (sizeBytes > MAX_KEPT_BYTES) throw refused(`${name} is larger than brig accepts`);
      this.#kept.set(name, await buffer(content));
      return;
    }
    await mkdir(dirname(path), { recursive: true });
    const isExecutable = (mode & 0o111) !== 0;
    await pipeline(content, createWriteStream(path, { flags: "wx", mode: isExecutable ? 0o755 : 0o644 }));
  }

  #pathOf(path: string): string {
    const names = path.replace(/\/$/, "").split("/");
    const isSafe = names.every(
      (name) => name !== "" && name !== "." && name !== ".." && !name.includes("\0"),
    );
    if (!isSafe || names.length > MAX_DEPTH) throw refused("it has a path that leads out of it");
    return join(this.#options.into, ...names);
  }
}

function refused(problem: string, cause?: unknown): BrigError {
  return new BrigError(`an archive of the store is refused: ${problem}`, {
    code: "store.failed",
    hint: "remove it from the store, and run the same command again",
    cause,
  });
}
