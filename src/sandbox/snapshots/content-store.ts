import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, type FileHandle, link, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";

/** A content that was added to a store. */
export interface AddedContent {
  /** The SHA-256 of the content, in lower-case hex, which is also its name in the store. */
  sha256: string;
  sizeBytes: number;
  /** False if the store had it already. */
  isNew: boolean;
}

/**
 * Stores contents of files in a directory, each once, under its SHA-256. A stored content is never changed.
 */
export class ContentStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Stores a content, completely or not at all. Throws the errors of the source and of the file system. */
  async add(source: AsyncIterable<Uint8Array> | Uint8Array): Promise<AddedContent> {
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
  async *read(sha256: string): AsyncGenerator<Buffer> {
    const path = this.#pathOf(sha256);
    const hash = createHash("sha256");
    try {
      for await (const piece of createReadStream(path)) {
        hash.update(piece);
        yield piece;
      }
    } catch (cause) {
      const reason = errnoOf(cause) === "ENOENT" ? "is missing" : `cannot be read: ${errnoOf(cause)}`;
      throw damaged(path, reason, cause);
    }
    if (hash.digest("hex") !== sha256) throw damaged(path, "has been changed");
  }

  #pathOf(sha256: string): string {
    return join(this.#directory, sha256.slice(0, 2), sha256.slice(2));
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

async function writeAll(
  file: FileHandle,
  source: AsyncIterable<Uint8Array>,
): Promise<Omit<AddedContent, "isNew">> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  for await (const piece of source) {
    hash.update(piece);
    sizeBytes += piece.length;
    await file.writeFile(piece);
  }
  return { sha256: hash.digest("hex"), sizeBytes };
}

function damaged(path: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the stored content ${path} ${reason}`, {
    code: "snapshot.invalid",
    hint: "the snapshot can no longer be used; remove it",
    cause,
  });
}
