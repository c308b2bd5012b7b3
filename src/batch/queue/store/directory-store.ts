import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { access, link, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { type FetchLimits, type ObjectStore, type StoredFile, tooLarge } from "./object-store.js";

/** A directory that all machines share. */
export class DirectoryStore implements ObjectStore {
  readonly name: string;
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
    this.name = root;
  }

  /** Makes the directory if it is missing. Error: `store.failed`. */
  static async open(root: string): Promise<DirectoryStore> {
    const store = new DirectoryStore(root);
    await store.#attempt(makeDirectory(root));
    return store;
  }

  async put(key: string, { path, signal }: StoredFile): Promise<"stored" | "present"> {
    return await this.#attempt(this.#put(key, path, signal));
  }

  async get(key: string, file: string, { maxBytes, signal }: FetchLimits): Promise<"fetched" | "missing"> {
    return await this.#attempt(this.#get(key, file, { maxBytes, signal }));
  }

  async has(key: string): Promise<boolean> {
    return await access(this.#path(key)).then(
      () => true,
      () => false,
    );
  }

  async remove(key: string): Promise<void> {
    await this.#attempt(rm(this.#path(key), { force: true }));
  }

  async #put(key: string, from: string, signal: AbortSignal | undefined): Promise<"stored" | "present"> {
    const path = this.#path(key);
    if (await this.has(key)) return "present";
    await makeDirectory(dirname(path));
    const unfinished = `${path}.${randomBytes(6).toString("hex")}.new`;
    try {
      await pipeline(createReadStream(from), createWriteStream(unfinished, { flags: "wx" }), { signal });
      await syncFile(unfinished);
      return await publish(unfinished, path);
    } finally {
      await rm(unfinished, { force: true });
    }
  }

  async #get(key: string, file: string, { maxBytes, signal }: FetchLimits): Promise<"fetched" | "missing"> {
    const path = this.#path(key);
    const found = await stat(path).catch((error) => {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    });
    if (found === null) return "missing";
    if (found.size > maxBytes) throw tooLarge(key, this.name);
    await pipeline(createReadStream(path), createWriteStream(file, { flags: "wx" }), { signal });
    return "fetched";
  }

  async #attempt<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      throw new BrigError(`cannot use the directory ${this.#root}: ${systemReason(error)}`, {
        code: "store.failed",
        hint: "all machines need to be able to write there: see --results",
        errno: errnoOf(error),
        cause: error,
      });
    }
  }

  #path(key: string): string {
    return join(this.#root, key);
  }
}

/** A link is made only if there is no such name yet. Where there are no links, a later file takes the place of the first. */
async function publish(unfinished: string, path: string): Promise<"stored" | "present"> {
  try {
    await link(unfinished, path);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return "present";
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(errnoOf(error) ?? "")) throw error;
    await rename(unfinished, path);
  }
  return "stored";
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
