import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { TarFile } from "../docker/tar.js";
import type { ImageDefinition } from "./definition.js";
import { type RipgrepPackage, readRipgrep, ripgrepPackage } from "./ripgrep.js";

/** What one build depends on. */
export interface BuildContext {
  files: TarFile[];
  ripgrep: RipgrepPackage | null;
  /** `repository:` and twelve hex digits that stand for all of the above and the architecture. */
  tag: string;
}

/** Reads the files of an image and names the result of building them on `arch` ("amd64" or "arm64"). */
export async function readBuildContext(definition: ImageDefinition, arch: string): Promise<BuildContext> {
  const files = await readFiles(definition);
  const ripgrep = definition.needsRipgrep ? await ripgrepPackage(arch) : null;
  const hash = contentHash(files, [arch, ripgrep?.name ?? "", ripgrep?.version ?? ""]);
  return { files, ripgrep, tag: `${definition.repository}:${hash}` };
}

/** The files to send, with the large ones that the tag stands for by version alone. */
export async function completeFiles({ files, ripgrep }: BuildContext): Promise<TarFile[]> {
  if (ripgrep === null) return files;
  return [...files, { path: "rg", mode: 0o755, content: await readRipgrep(ripgrep) }];
}

async function readFiles({ directory, isPart }: ImageDefinition): Promise<TarFile[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter(isPart)
    .sort();
  return await Promise.all(paths.map((path) => readContextFile(directory, path)));
}

/** Only the executable bit of a mode is kept: the others depend on the umask of whoever made the checkout. */
async function readContextFile(directory: string, path: string): Promise<TarFile> {
  const file = join(directory, path);
  const [content, { mode }] = await Promise.all([readFile(file), stat(file)]);
  return { path, mode: mode & 0o100 ? 0o755 : 0o644, content };
}

function contentHash(files: TarFile[], words: string[]): string {
  const hash = createHash("sha256");
  for (const word of words) hash.update(`${word}\0`);
  for (const { path, mode, content } of files) {
    hash.update(`${path}\0${mode.toString(8)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex").slice(0, 12);
}
