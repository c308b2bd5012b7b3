import { createHash, type Hash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { fullDiskOfBrig } from "../../lib/files/full-disk.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { namesIn } from "../../lib/files/names-in.js";
import type { ContentPiece } from "../files/file-request.js";

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
    const names = await namesIn(this.#directory);
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

/** A part of a file that is no hole. */
interface Extent {
  offset: number;
  bytes: number;
}

/** The places of the data of a file with holes. The layout is stored behind the data. */
interface Layout {
  /** The extents in order, with holes between them. */
  extents: readonly Extent[];
  /** The size of the file with its holes. */
  sizeBytes: number;
}

const EXTENT_BYTES = 16;
/** The size of the file and the number of its extents. */
const END_BYTES = 16;

/** Notes where a piece belongs, which comes behind all others. */
function addExtent(extents: Extent[], { offset, data }: ContentPiece): void {
  const last = extents.at(-1);
  if (last !== undefined && last.offset + last.bytes === offset) last.bytes += data.length;
  else extents.push({ offset, bytes: data.length });
}

function encodeLayout({ extents, sizeBytes }: Layout): Buffer {
  const bytes = Buffer.alloc(extents.length * EXTENT_BYTES + END_BYTES);
  const numbers = [...extents.flatMap(({ offset, bytes }) => [offset, bytes]), sizeBytes, extents.length];
  for (const [index, number] of numbers.entries()) bytes.writeBigUInt64LE(BigInt(number), index * 8);
  return bytes;
}

/** Reads the layout at the end of a stored content; null if it has none that fits. Errors: the file system's. */
async function readLayout(path: string): Promise<Layout | null> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const end = await readAt(file, size - END_BYTES, END_BYTES);
    if (end === null) return null;
    const [sizeBytes, count] = [Number(end.readBigUInt64LE(0)), Number(end.readBigUInt64LE(8))];
    const start = size - END_BYTES - count * EXTENT_BYTES;
    const list = await readAt(file, start, count * EXTENT_BYTES);
    return list === null ? null : parseLayout(list, { dataBytes: start, sizeBytes });
  } finally {
    await file.close();
  }
}

function parseLayout(
  list: Buffer,
  { dataBytes, sizeBytes }: { dataBytes: number; sizeBytes: number },
): Layout | null {
  const extents: Extent[] = [];
  let [end, sum] = [0, 0];
  for (let at = 0; at < list.length; at += EXTENT_BYTES) {
    const [offset, bytes] = [Number(list.readBigUInt64LE(at)), Number(list.readBigUInt64LE(at + 8))];
    if (offset < end || bytes === 0) return null;
    extents.push({ offset, bytes });
    end = offset + bytes;
    sum += bytes;
  }
  const isSafe = Number.isSafeInteger(sizeBytes) && end <= sizeBytes;
  return isSafe && sum === dataBytes ? { extents, sizeBytes } : null;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer | null> {
  if (position < 0 || !Number.isSafeInteger(position)) return null;
  const bytes = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await file.read(bytes, read, length - read, position + read);
    if (bytesRead === 0) return null;
    read += bytesRead;
  }
  return bytes;
}

/** Puts stored data back where they belong. The last piece has no bytes, and says the size. */
async function* piecesOf(
  stored: AsyncIterable<Buffer>,
  { extents, sizeBytes }: Layout,
): AsyncGenerator<ContentPiece> {
  let [index, done] = [0, 0];
  for await (const bytes of stored) {
    for (let at = 0; at < bytes.length; ) {
      const extent = extents[index];
      if (extent === undefined) return;
      const data = bytes.subarray(at, at + extent.bytes - done);
      yield { offset: extent.offset + done, data };
      at += data.length;
      done += data.length;
      if (done === extent.bytes) [index, done] = [index + 1, 0];
    }
  }
  yield { offset: sizeBytes, data: Buffer.alloc(0) };
}

/**
 * If the host's file system failed while something was stored, returns an error that explains this; otherwise
 * returns the error as it is.
 */
export function notStored(directory: string, cause: unknown): unknown {
  const errno = cause instanceof BrigError ? undefined : errnoOf(cause);
  if (errno === undefined) return cause;
  return new BrigError(
    `the changes of the workspace cannot be stored in ${directory}: ${systemReason(cause)}`,
    {
      code: "snapshot.failed",
      errno,
      disk: fullDiskOfBrig(cause, directory),
      hint: "make room there, or set BRIG_HOME to a directory that can be written to",
      cause,
    },
  );
}
