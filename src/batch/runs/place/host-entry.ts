import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import type { TarEntry } from "../../../sandbox/index.js";

/** A file, a link or a directory of the host as an entry of an archive, without what is in a directory. Null for anything else. */
export async function hostEntry(
  path: string,
  header: Pick<TarEntry, "path" | "owner">,
): Promise<TarEntry | null> {
  const stat = await lstat(path);
  if (stat.isDirectory()) return { ...header, mode: 0o755, kind: "directory" };
  if (stat.isSymbolicLink()) return { ...header, mode: 0o777, kind: "link", target: await readlink(path) };
  if (!stat.isFile()) return null;
  const { size: sizeBytes, mode } = stat;
  const content = () => hostContent(path, sizeBytes);
  return { ...header, mode: mode & 0o777, kind: "file", sizeBytes, content };
}

/** Reads no more than was announced, even if the file has grown meanwhile, and follows no link. */
export async function* hostContent(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  if (sizeBytes === 0) await file.close();
  else yield* file.createReadStream({ start: 0, end: sizeBytes - 1 });
}
