import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Sandbox } from "../../../sandbox/index.js";
import { containerOf } from "../../../sandbox/index.js";
import { unlessRefused } from "../place/file-refusal.js";
import type { ReadableContainer } from "../place/image-files.js";

/** An amount that a host can spare for a while. */
const MAX_BYTES = 2 * 1024 ** 3;

const TOO_LARGE = new Error("the work is too large to be kept");

interface KeptRoot {
  /** Path in the container. */
  path: string;
  /** The tar file; null for what does not exist. */
  file: string | null;
}

interface KeepOptions {
  /** Absolute paths in the container. None is in another. */
  roots: readonly string[];
  /** Folder on the host; must not exist yet. */
  folder: string;
  signal?: AbortSignal | undefined;
  maxBytes?: number | undefined;
}

/** The agent's work in some directories, kept on the host, so that tests cannot change it. */
export class KeptWork implements AsyncDisposable {
  readonly roots: readonly string[];
  readonly #kept: readonly KeptRoot[];
  readonly #folder: string;

  private constructor(kept: readonly KeptRoot[], folder: string) {
    this.roots = kept.map(({ path }) => path);
    this.#kept = kept;
    this.#folder = folder;
  }

  /** Null if it is too large. Errors: the engine's, and those of the host's files. */
  static async keep(
    { engine, containerId }: ReadableContainer,
    { roots, folder, signal, maxBytes = MAX_BYTES }: KeepOptions,
  ): Promise<KeptWork | null> {
    await mkdir(folder, { mode: 0o700 });
    const kept: KeptRoot[] = [];
    let left = maxBytes;
    const counted = () =>
      new Transform({
        transform: (chunk: Buffer, _, done) => {
          left -= chunk.length;
          done(left < 0 ? TOO_LARGE : null, chunk);
        },
      });
    try {
      for (const [index, path] of roots.entries()) {
        const archive = await engine.readArchive(containerId, path, signal && { signal });
        const file = archive === null ? null : join(folder, `${index}.tar`);
        if (archive !== null && file !== null)
          await pipeline(archive, counted(), createWriteStream(file, { mode: 0o600 }), { signal });
        kept.push({ path, file });
      }
      return new KeptWork(kept, folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      if (error === TOO_LARGE) return null;
      throw error;
    }
  }

  /** Makes the directories of another container what they were in the agent's, with root's rights. */
  async placeIn(sandbox: Sandbox): Promise<void> {
    const { engine, containerId } = containerOf(sandbox);
    for (const { path, file } of this.#kept) {
      await clear(sandbox, path);
      if (file === null) continue;
      const directory = posix.dirname(path);
      await sandbox.files.mkdir(directory, { recursive: true, mode: 0o755 });
      await engine.putArchive(containerId, directory, createReadStream(file));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A directory is emptied rather than removed, because it may be a volume. */
async function clear({ files }: Sandbox, path: string): Promise<void> {
  const entries = await unlessRefused(files.list(path));
  if (entries === null) return await files.remove(path, { recursive: true, force: true });
  for (const { name } of entries)
    await files.remove(posix.join(path, name), { recursive: true, force: true });
}
