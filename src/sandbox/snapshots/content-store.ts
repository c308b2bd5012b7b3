import { createHash, type Hash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, type FileHandle, link, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import type { ContentPiece } from "../files/extents.js";
import { addExtent, type Extent, encodeLayout, type Layout, piecesOf, readLayout } from "./content-layout.js";

/** A content that was added to a store. */
export interface AddedContent {
  /**
   * Its name in the store: the SHA-256 of the stored bytes, in lower-case hex. For a content with holes, these are its data
   * and the places of the data, and the name begins with `SPARSE`.
   */
  sha256: string;
  /** The space that it takes in the store. */
  sizeBytes: number;
  /** False if the store had it already. */
  isNew: boolean;
}

/** Tells a content with holes from another one that is as what is stored of it. */
const SPARSE = "sparse-";

/**
 * Stores contents of files in a directory, each once, under its SHA-256 and without its holes. A stored content is
 * never changed.
 */
export class ContentStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Stores a content, completely or not at all. Throws the errors of the source and of the file system. */
  async add(source: AsyncIterable<ContentPiece> | Uint8Array): Promise<AddedContent> {
    if (source instanceof Uint8Array) {
      const stored = { sha256: createHash("sha256").update(source).digest("hex"), sizeBytes: source.length };
      // Writing nothing is much faster than writing what is there already.
      if (await this.has(stored.sha256)) return { ...stored, isNew: false };
      return await this.#write(async (file) => {
        await file.writeFile(source);
        return stored;
      });
    }
    return await this.#write((file) => writeAll(file, source));
  }

  async #write(fill: (file: FileHandle) => Promise<Omit<AddedContent, "isNew">>): Promise<AddedContent> {
    const unfinished = join(this.#directory, `.${randomUUID()}`);
    const file = await inDirectory(this.#directory, () => open(unfinished, "wx", 0o400));
    try {
      const stored = await fill(file).finally(() => file.close());
      const path = this.#pathOf(stored.sha256);
      const isNew = !(await this.has(stored.sha256));
      if (isNew) await inDirectory(dirname(path), () => rename(unfinished, path));
      else await rm(unfinished);
      return { ...stored, isNew };
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
  }

  /** Removes what a killed process has not written to its end, and returns the number. Nobody may be writing. */
  async removeUnfinished(): Promise<number> {
    const names = await readdir(this.#directory).catch((error: unknown) => {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    });
    const left = names.filter((name) => name.startsWith("."));
    for (const name of left) await rm(join(this.#directory, name), { force: true });
    return left.length;
  }

  async has(sha256: string): Promise<boolean> {
    return await access(this.#pathOf(sha256)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Adds a content of another store. If both are on one file system, it is linked without being read. Errors: `snapshot.invalid` if it
   * is missing there or damaged, those of the file system.
   */
  async addFrom(other: ContentStore, sha256: string): Promise<void> {
    const path = this.#pathOf(sha256);
    await makeDirectory(dirname(path), { mode: 0o700 });
    try {
      await link(other.#pathOf(sha256), path);
    } catch (error) {
      if (errnoOf(error) === "EEXIST") return;
      if (!cannotLink.has(errnoOf(error) ?? "")) throw error;
      await this.add(other.read(sha256));
    }
  }

  /**
   * Reads a content in pieces. Error: `snapshot.invalid` if it is missing, or, after its last piece, if it
   * does not have its SHA-256.
   */
  async *read(sha256: string): AsyncGenerator<ContentPiece> {
    const path = this.#pathOf(sha256);
    const isSparse = sha256.startsWith(SPARSE);
    const hash = createHash("sha256");
    try {
      const layout = isSparse ? await readLayout(path) : await withoutHoles(path);
      if (layout === null) throw damaged(path, "has been changed");
      yield* piecesOf(storedData(path, layout, hash), layout);
      if (isSparse) hash.update(encodeLayout(layout));
    } catch (cause) {
      if (cause instanceof BrigError) throw cause;
      const reason = errnoOf(cause) === "ENOENT" ? "is missing" : `cannot be read: ${errnoOf(cause)}`;
      throw damaged(path, reason, cause);
    }
    if (nameOf(hash, { isSparse }) !== sha256) throw damaged(path, "has been changed");
  }

  #pathOf(sha256: string): string {
    const [hex, ending] = sha256.startsWith(SPARSE) ? [sha256.slice(SPARSE.length), ".sparse"] : [sha256, ""];
    return join(this.#directory, hex.slice(0, 2), `${hex.slice(2)}${ending}`);
  }
}

/** Makes the directory only if it is missing, since most often it is there. */
async function inDirectory<T>(directory: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    await makeDirectory(directory, { mode: 0o700 });
    return await create();
  }
}

/**
 * The errors of link(2) if the content is missing, if the two names are on different file systems, or if there are no hard links. Reading
 * the content tells the first from the others.
 */
const cannotLink = new Set(["ENOENT", "EXDEV", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "ENOSYS"]);

function nameOf(hash: Hash, { isSparse }: { isSparse: boolean }): string {
  return `${isSparse ? SPARSE : ""}${hash.digest("hex")}`;
}

async function writeAll(
  file: FileHandle,
  source: AsyncIterable<ContentPiece>,
): Promise<Omit<AddedContent, "isNew">> {
  const hash = createHash("sha256");
  const extents: Extent[] = [];
  let [sizeBytes, storedBytes] = [0, 0];
  const write = async (bytes: Buffer) => {
    hash.update(bytes);
    await file.writeFile(bytes);
    storedBytes += bytes.length;
  };
  for await (const piece of source) {
    sizeBytes = piece.offset + piece.data.length;
    if (piece.data.length === 0) continue;
    addExtent(extents, piece);
    await write(piece.data);
  }
  const isSparse = storedBytes < sizeBytes;
  if (isSparse) await write(encodeLayout({ extents, sizeBytes }));
  return { sha256: nameOf(hash, { isSparse }), sizeBytes: storedBytes };
}

async function withoutHoles(path: string): Promise<Layout> {
  const { size } = await stat(path);
  return { extents: [{ offset: 0, bytes: size }], sizeBytes: size };
}

async function* storedData(path: string, { extents }: Layout, hash: Hash): AsyncGenerator<Buffer> {
  const dataBytes = extents.reduce((sum, { bytes }) => sum + bytes, 0);
  if (dataBytes === 0) return;
  for await (const bytes of createReadStream(path, { end: dataBytes - 1 }) as AsyncIterable<Buffer>) {
    hash.update(bytes);
    yield bytes;
  }
}

function damaged(path: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the stored content ${path} ${reason}`, {
    code: "snapshot.invalid",
    hint: "the snapshot can no longer be used; remove it",
    cause,
  });
}
