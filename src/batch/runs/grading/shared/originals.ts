import { lstat, readFile, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { errnoOf } from "../../../../lib/errno.js";
import type { ReceivedEntry, TarEntry } from "../../../../sandbox/index.js";
import { readTar, streamTar } from "../../../../sandbox/index.js";
import type { TaskCopy } from "../../../tasks/task.js";
import type { ImageFiles } from "../../place/image-files.js";
import { isLeftOut } from "../../place/upload-directory.js";

export interface GivenFiles {
  /** Files and directories of the host that were copied into the container, the last one last. */
  copies: readonly Pick<TaskCopy, "source" | "target" | "exclude">[];
  owner: { uid: number; gid: number };
}

const TEXT_MAX_BYTES = 1024 * 1024;

/** The files that an agent's container began with: those of the image, and those that the task put into it. */
export class Originals {
  readonly #image: ImageFiles;
  readonly #given: GivenFiles;

  constructor(image: ImageFiles, given: GivenFiles) {
    this.#image = image;
    this.#given = given;
  }

  /** A tar stream of the file or of the directory with all that is in it. Null if there was none. */
  async read(path: string): Promise<Readable | null> {
    const given = await this.#givenEntry(path);
    return given === null ? await this.#image.read(path) : streamTar([given]);
  }

  /** Original state of the path itself, without its contents. `isOfImage`: false where the engine says that the image has no such path. */
  async entry(path: string, { isOfImage = true } = {}): Promise<ReceivedEntry | null> {
    if (!isOfImage && (await this.#givenEntry(path)) === null) return null;
    const archive = await this.read(path);
    if (archive === null) return null;
    for await (const entry of readTar(archive)) return entry;
    return null;
  }

  /** Null for no regular file, and for a large one. */
  async text(path: string): Promise<string | null> {
    const archive = await this.read(path);
    if (archive === null) return null;
    for await (const { kind, sizeBytes, content } of readTar(archive))
      return kind === "file" && sizeBytes <= TEXT_MAX_BYTES ? (await buffer(content)).toString("utf8") : null;
    return null;
  }

  async #givenEntry(path: string): Promise<TarEntry | null> {
    const { copies, owner } = this.#given;
    for (const { source, target, exclude } of copies.toReversed()) {
      const relative = posix.relative(target, path);
      if (relative.startsWith("..") || isLeftOut(relative, exclude)) continue;
      const found = await hostEntry(join(source, relative), { path: posix.basename(path), owner });
      if (found !== null) return found;
    }
    return null;
  }
}

async function hostEntry(file: string, header: Pick<TarEntry, "path" | "owner">): Promise<TarEntry | null> {
  try {
    const stat = await lstat(file);
    if (stat.isSymbolicLink()) return { ...header, mode: 0o777, kind: "link", target: await readlink(file) };
    if (!stat.isFile()) return null;
    const content = await readFile(file);
    const whole = async function* () {
      yield content;
    };
    return { ...header, mode: stat.mode & 0o777, kind: "file", sizeBytes: content.length, content: whole };
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(errnoOf(error) ?? "")) return null;
    throw error;
  }
}
