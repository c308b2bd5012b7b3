import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { errnoOf } from "../../../../lib/errno.js";
import type { ReceivedEntry, TarEntry } from "../../../../sandbox/index.js";
import { streamTar } from "../../../../sandbox/index.js";
import type { TaskCopy } from "../../../tasks/task.js";
import { hostEntry } from "../../place/host-entry.js";
import { type ImageFiles, ofFirstEntry, textOfArchive } from "../../place/image-files.js";
import { isLeftOut } from "../../place/upload-directory.js";

export interface GivenFiles {
  /** Files and directories of the host that were copied into the container, the last one last. */
  copies: readonly Pick<TaskCopy, "source" | "target" | "exclude">[];
  owner: { uid: number; gid: number };
}

/** The files that an agent's container began with: those of the image, and those that the task put into it. */
export class Originals {
  readonly #image: Pick<ImageFiles, "read">;
  readonly #given: GivenFiles;

  constructor(image: Pick<ImageFiles, "read">, given: GivenFiles) {
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
    return await ofFirstEntry(await this.read(path), (entry) => entry);
  }

  /** Null for no regular file, and for a large one. */
  async text(path: string): Promise<string | null> {
    return await textOfArchive(await this.read(path));
  }

  async #givenEntry(path: string): Promise<TarEntry | null> {
    const { copies, owner } = this.#given;
    for (const { source, target, exclude } of copies.toReversed()) {
      const relative = posix.relative(target, path);
      if (relative.startsWith("..") || isLeftOut(relative, exclude)) continue;
      const found = await givenFile(join(source, relative), { path: posix.basename(path), owner });
      if (found !== null) return found;
    }
    return null;
  }
}

/** Null where there is no such file or link. */
async function givenFile(file: string, header: Pick<TarEntry, "path" | "owner">): Promise<TarEntry | null> {
  try {
    const entry = await hostEntry(file, header);
    return entry?.kind === "directory" ? null : entry;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(errnoOf(error) ?? "")) return null;
    throw error;
  }
}
