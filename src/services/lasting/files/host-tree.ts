import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
} from "node:fs/promises";
import { platform } from "node:os";
import { basename, dirname, join, sep } from "node:path";
import type { Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import type { ReceivedEntry, TarEntry } from "../../../sandbox/index.js";
import { readTar, streamTar, tarBytes } from "../../../sandbox/index.js";
import { innerPath, TOP } from "../../serve/files/sandbox-archive.js";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants;

/** An archive of a file or directory of this machine. Links are copied as links. Errors on the stream: those of the system. */
export function readHostTree(path: string): Readable {
  return streamTar(entriesAt(path, TOP));
}

/** About how long that archive is. Errors: those of the system. */
export async function hostTreeBytes(path: string): Promise<number> {
  return await tarBytes(entriesAt(path, TOP));
}

async function* entriesAt(path: string, name: string): AsyncGenerator<TarEntry> {
  const stat = await lstat(path);
  const entry = { path: name, mode: stat.mode & 0o777, modifiedAt: stat.mtime };
  if (stat.isSymbolicLink()) yield { ...entry, kind: "link", target: await readlink(path) };
  else if (stat.isFile())
    yield { ...entry, kind: "file", sizeBytes: stat.size, content: () => contentOf(path, stat.size) };
  if (!stat.isDirectory()) return;
  yield { ...entry, kind: "directory" };
  for (const inside of (await readdir(path)).toSorted())
    yield* entriesAt(join(path, inside), `${name}/${inside}`);
}

async function* contentOf(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  if (sizeBytes === 0) return;
  const file = await open(path, O_RDONLY | O_NOFOLLOW);
  try {
    for await (const piece of file.createReadStream({ end: sizeBytes - 1, autoClose: false }))
      yield piece as Buffer;
  } finally {
    await file.close();
  }
}

/**
 * Writes an archive from a sandbox to this machine, its top to `path`. Commands of the sandbox may change the workspace at the same time: every directory on
 * the way is opened by itself and not if it is a link, so that nothing is written to where a link leads. Errors: `file.symlink`; `file.failed`;
 * `usage.invalid` for names that lead out of the archive.
 */
export async function writeHostTree(
  archive: Readable,
  { path, workspace }: { path: string; workspace: string | null },
): Promise<void> {
  const parent = await realpath(dirname(path));
  const name = basename(path);
  await requireWithin(workspace, { path, parent });
  for await (const entry of readTar(archive)) {
    const names = [name, ...innerPath(entry.path, true).split("/")].filter((one) => one !== "");
    try {
      await writeEntry(entry, parent, names);
    } catch (cause) {
      if (cause instanceof BrigError) throw cause;
      const isLink = ["ELOOP", "ENOTDIR"].includes(errnoOf(cause) ?? "");
      throw new BrigError(
        isLink
          ? `${join(parent, ...names)} would be written through a link`
          : `${join(parent, ...names)} cannot be written: ${systemReason(cause)}`,
        { code: isLink ? "file.symlink" : "file.failed", cause },
      );
    }
  }
}

/** A link in the workspace may have been made by a command. Error: `file.symlink` if one leads out of it. */
async function requireWithin(
  workspace: string | null,
  { path, parent }: { path: string; parent: string },
): Promise<void> {
  if (workspace === null || !isBelow(path, workspace)) return;
  const real = await realpath(workspace);
  if (parent === real || isBelow(parent, real)) return;
  throw new BrigError(
    `${dirname(path)} leads out of the workspace by a link, which a command may have made`,
    {
      code: "file.symlink",
      hint: `name the place itself: ${parent}`,
    },
  );
}

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);
}

async function writeEntry(entry: ReceivedEntry, parent: string, names: readonly string[]): Promise<void> {
  const above = [...parent.split(sep).filter((name) => name !== ""), ...names.slice(0, -1)];
  await using directory = await OpenDirectory.walk(above);
  const name = names.at(-1) as string;
  const mode = entry.mode & 0o777;
  if (entry.kind === "directory") await directory.makeDirectory(name, mode);
  else if (entry.kind === "symbolic-link") await directory.makeLink(name, entry.target ?? "");
  else if (entry.kind === "file") await directory.writeFile(name, { mode, content: entry.content });
}

/** A directory that stays the same one, whatever happens to its path. */
class OpenDirectory implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
  }

  /** Opens one directory after the other from the root, none of which may be a link. */
  static async walk(names: readonly string[]): Promise<OpenDirectory> {
    let directory = new OpenDirectory(await open("/", O_RDONLY | O_DIRECTORY), "/");
    for (const name of names) {
      const above = directory;
      try {
        const handle = await open(above.#at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        directory = new OpenDirectory(handle, join(above.#path, name));
      } finally {
        await above.#handle.close();
      }
    }
    return directory;
  }

  async makeDirectory(name: string, mode: number): Promise<void> {
    // Its own user must be able to fill it.
    await mkdir(this.#at(name), { mode: mode | 0o700 }).catch((error: unknown) => {
      if (errnoOf(error) !== "EEXIST") throw error;
    });
    const made = await open(this.#at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    await made.close();
  }

  async makeLink(name: string, target: string): Promise<void> {
    await rm(this.#at(name), { force: true });
    await symlink(target, this.#at(name));
  }

  /** Replaces what has the name, a link itself too. */
  async writeFile(
    name: string,
    { mode, content }: { mode: number; content: AsyncIterable<Uint8Array> },
  ): Promise<void> {
    const unfinished = this.#at(`.brig-cp-${randomBytes(6).toString("hex")}`);
    const file = await open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    try {
      try {
        for await (const piece of content) await file.appendFile(piece);
      } finally {
        await file.close();
      }
      await rename(unfinished, this.#at(name));
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  /** By the open directory where the system has paths for that. */
  #at(name: string): string {
    return platform() === "linux" ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.#path, name);
  }
}
