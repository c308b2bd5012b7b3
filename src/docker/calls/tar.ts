import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip } from "node:zlib";
import { extract, pack } from "tar-stream";

export interface TarFile {
  /** Relative, with slashes. */
  path: string;
  /** Permission bits, e.g. 0o644. */
  mode: number;
  content: Uint8Array;
}

/** An uncompressed tar stream. Without times or owners, so that equal files give equal bytes. */
export function packTar(files: Iterable<TarFile>): Readable {
  const tar = pack();
  for (const { path, mode, content } of files) {
    tar.entry({ name: path, mode, mtime: new Date(0), uid: 0, gid: 0 }, Buffer.from(content));
  }
  tar.finalize();
  return Readable.from(tar);
}

/** Reads one regular file of a gzipped tar archive. Throws if the archive lacks it. */
export async function readTarFile(archive: string, path: string): Promise<Buffer> {
  const entries = createReadStream(archive).pipe(createGunzip()).pipe(extract());
  for await (const entry of entries) {
    if (entry.header.name === path && entry.header.type === "file") return await buffer(entry);
    entry.resume();
  }
  throw new Error(`${archive} contains no file ${path}`);
}
