import type { BigIntStats, Dirent } from "node:fs";
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { BrigError, type ErrorCode } from "../../src/errors.js";
import type { ToolReadOptions, ToolSandbox } from "../../src/tools/tool-sandbox.js";

const ENTRIES_AT_A_TIME = 100;

type AllFiles = ToolSandbox["files"];
/** A part of a file, or all of it. */
type ReadOptions = (ToolReadOptions | { maxBytes: number; signal?: AbortSignal | undefined }) & LinkOptions;

interface LinkOptions {
  refuseSymlinks?: boolean | undefined;
}

export type HostFiles = Omit<AllFiles, "read" | "stat"> & {
  read(path: string, options: ReadOptions): Promise<Uint8Array>;
  stat(
    path: string,
    options: { followSymlinks?: boolean; signal?: AbortSignal | undefined } & LinkOptions,
  ): Promise<{
    type: string;
    mode: number;
    dev: bigint;
    ino: bigint;
    sizeBytes: number;
    linkTarget: string | null;
  }>;
};

/** Files of this machine, with the promises and the errors of a sandbox's files. */
export const hostFiles: HostFiles = {
  read: (path, options) =>
    asFileError(path, async () => {
      options.signal?.throwIfAborted();
      await refuseLinks(path, options);
      const { size } = await requireRegular(path);
      if ("offsetBytes" in options) return await readPart(path, options);
      if (size > options.maxBytes) throw new BrigError(`${path} is too large`, { code: "file.too-large" });
      return await readFile(path);
    }),
  readPastHole: async (path, options) => ({ holeBytes: 0, data: await hostFiles.read(path, options) }),
  async writeEach(files, { signal, refuseSymlinks }) {
    for (const [written, file] of files.entries()) {
      try {
        signal?.throwIfAborted();
        await asFileError(file.path, () => refuseLinks(file.path, { refuseSymlinks }));
        await writeFile(file);
      } catch (failure) {
        return { written, failure };
      }
    }
    return { written: files.length, failure: null };
  },
  stat: (path, { followSymlinks = true, refuseSymlinks }) =>
    asFileError(path, async () => {
      await refuseLinks(followSymlinks ? path : dirname(path), { refuseSymlinks });
      const found = await (followSymlinks ? stat : lstat)(path, { bigint: true });
      const { dev, ino, mode, size } = found;
      const linkTarget = found.isSymbolicLink() ? await readlink(path) : null;
      return { type: typeOf(found), mode: Number(mode), dev, ino, sizeBytes: Number(size), linkTarget };
    }),
  list: (path, { onEntries }) =>
    asFileError(path, async () => {
      const entries = await readdir(path instanceof Uint8Array ? Buffer.from(path) : path, {
        withFileTypes: true,
        encoding: "buffer",
      });
      for (let at = 0; at < entries.length; at += ENTRIES_AT_A_TIME)
        onEntries(
          entries
            .slice(at, at + ENTRIES_AT_A_TIME)
            .map((entry) => ({ nameBytes: entry.name, type: typeOf(entry) })),
        );
    }),
  mkdir: (path, options) =>
    asFileError(path, async () => {
      await refuseLinks(path, options);
      await mkdir(path, { recursive: true });
    }),
  remove: (path, options) =>
    asFileError(path, async () => {
      await refuseLinks(dirname(path), options);
      await unlink(path);
    }),
};

/** For tests that swap a link in between two calls; one that comes in between this and what follows is not seen. */
async function refuseLinks(path: string, { refuseSymlinks }: LinkOptions): Promise<void> {
  if (!refuseSymlinks || path === "/") return;
  await refuseLinks(dirname(path), { refuseSymlinks });
  const found = await lstat(path).catch(ignoreMissing);
  if (!found?.isSymbolicLink()) return;
  throw new BrigError(`a symbolic link is on the way to ${path}`, { code: "file.symlink", errno: "ELOOP" });
}

function writeFile({ path, data, mode }: { path: string; data: string; mode: number }): Promise<void> {
  return asFileError(path, async () => {
    const target = await followLinks(path);
    const existing = await stat(target).catch(ignoreMissing);
    if (existing !== null && !existing.isFile()) throw notRegular(path);
    const temporary = join(dirname(target), `.${basename(target).slice(0, 200)}.tmp`);
    await using file = await open(temporary, "wx", 0o600);
    await file.writeFile(data);
    await chmod(temporary, existing === null ? mode : existing.mode & 0o777);
    await rename(temporary, target);
  });
}

async function requireRegular(path: string): Promise<BigIntStats> {
  const found = await stat(path, { bigint: true });
  if (found.isDirectory()) throw Object.assign(new Error("EISDIR"), { code: "EISDIR" });
  if (found.isFile()) return found;
  throw new BrigError(`cannot read ${path}: it is not a regular file but a ${typeOf(found)}`, {
    code: "file.not-regular",
  });
}

async function readPart(path: string, { offsetBytes, lengthBytes }: ToolReadOptions): Promise<Buffer> {
  await using file = await open(path);
  const { size } = await file.stat();
  const buffer = Buffer.alloc(Math.min(lengthBytes, Math.max(size - offsetBytes, 0)));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, offsetBytes);
  return buffer.subarray(0, bytesRead);
}

/** The name that a chain of links at the end of a path leads to; it need not exist. */
async function followLinks(path: string): Promise<string> {
  const target = await readlink(path).catch(() => null);
  return target === null ? path : await followLinks(resolve(await realpath(dirname(path)), target));
}

function ignoreMissing(error: unknown): null {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
  throw error;
}

function notRegular(path: string): BrigError {
  return new BrigError(`${path} is not a regular file`, { code: "file.not-regular" });
}

function typeOf(entry: BigIntStats | Dirent<Buffer>): string {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  if (entry.isFIFO()) return "fifo";
  if (entry.isSocket()) return "socket";
  return entry.isCharacterDevice() ? "char-device" : "block-device";
}

const codes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "file.not-found",
  EACCES: "file.not-permitted",
  EPERM: "file.not-permitted",
  EROFS: "file.read-only",
  EISDIR: "file.is-directory",
  ENOTDIR: "file.not-directory",
  EEXIST: "file.exists",
};

async function asFileError<T>(path: string | Uint8Array, action: () => Promise<T>): Promise<T> {
  const text = path instanceof Uint8Array ? Buffer.from(path).toString() : path;
  if (!text.startsWith("/") || text.includes("\0"))
    throw new BrigError(`${JSON.stringify(text)} is not an absolute path`, { code: "file.not-found" });
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof BrigError || !(cause instanceof Error) || !("code" in cause)) throw cause;
    const errno = String(cause.code);
    throw new BrigError(cause.message, { code: codes[errno] ?? "file.failed", errno, cause });
  }
}
