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
import { BrigError, type ErrorCode } from "../../../../src/errors.js";
import type { PatchFiles } from "../../../../src/tools/apply-patch/patch-files.js";

const codes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "file.not-found",
  EACCES: "file.not-permitted",
  EPERM: "file.not-permitted",
  EROFS: "file.read-only",
  EISDIR: "file.is-directory",
  ENOTDIR: "file.not-directory",
  EEXIST: "file.exists",
};

/** Files of this machine, with the promises and the errors of a sandbox's files. */
export const hostFiles: PatchFiles = {
  read: (path, { maxBytes }) =>
    asFileError(async () => {
      const { size } = await requireRegular(path);
      if (size > maxBytes) throw new BrigError(`${path} is too large`, { code: "file.too-large" });
      return await readFile(path);
    }),
  write: (path, data, { mode }) =>
    asFileError(async () => {
      const target = await followLinks(path);
      const existing = await stat(target).catch(ignoreMissing);
      if (existing !== null && !existing.isFile()) throw notRegular(path);
      const temporary = join(dirname(target), `.${basename(target).slice(0, 200)}.tmp`);
      await using file = await open(temporary, "wx", 0o600);
      await file.writeFile(data);
      await chmod(temporary, existing === null ? mode : existing.mode & 0o777);
      await rename(temporary, target);
    }),
  stat: (path, { followSymlinks }) =>
    asFileError(async () => {
      const found = await (followSymlinks ? stat : lstat)(path, { bigint: true });
      return {
        type: found.isFile() ? "file" : "other",
        mode: Number(found.mode),
        dev: found.dev,
        ino: found.ino,
      };
    }),
  mkdir: (path) =>
    asFileError(async () => {
      await mkdir(path, { recursive: true });
    }),
  remove: (path) => asFileError(() => unlink(path)),
};

async function requireRegular(path: string) {
  const found = await stat(path);
  if (!found.isFile()) throw notRegular(path);
  return found;
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

async function asFileError<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof BrigError || !(cause instanceof Error) || !("code" in cause)) throw cause;
    throw new BrigError(cause.message, { code: codes[String(cause.code)] ?? "file.failed", cause });
  }
}

/** Every path below a directory: `null` for a directory, the target for a link, else the text. */
export async function readTree(root: string, below = ""): Promise<Record<string, string | null>> {
  const tree: Record<string, string | null> = {};
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const name = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(tree, { [`${name}/`]: null }, await readTree(root, name));
    else if (entry.isSymbolicLink()) tree[name] = `-> ${await readlink(join(root, name))}`;
    else tree[name] = await readFile(join(root, name), "latin1");
  }
  return tree;
}
