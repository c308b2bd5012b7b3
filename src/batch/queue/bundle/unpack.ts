import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { BrigError } from "../../../errors.js";
import type { ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";

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
      this.#kept.set(name, await collected(content));
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

async function collected(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function refused(problem: string, cause?: unknown): BrigError {
  return new BrigError(`an archive of the store is refused: ${problem}`, {
    code: "store.failed",
    hint: "remove it from the store, and run the same command again",
    cause,
  });
}
