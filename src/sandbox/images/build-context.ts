import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { TarFile } from "../docker/calls/tar.js";
import { type ImageDefinition, imageDefinitions } from "./definition.js";
import { type NpmPackage, type PackageFile, packageFor, readPackageFile } from "./npm-packages.js";

/** Everything that a build depends on. */
export interface BuildContext {
  files: TarFile[];
  /** Fetched only for a build. The tag depends on their hashes. */
  packages: { file: PackageFile; wanted: NpmPackage }[];
  /** `repository:` and twelve hex digits of a hash of all of the above, of what it is built on and of the architecture. */
  tag: string;
}

/** Reads the files of an image and computes the tag of its build for `arch` ("amd64" or "arm64"). */
export async function readBuildContext(definition: ImageDefinition, arch: string): Promise<BuildContext> {
  const files = await readFiles(definition);
  const packages = definition.packageFiles.map((file) => ({ file, wanted: packageFor(file, arch) }));
  const { parent } = definition;
  const below = parent === undefined ? [] : [(await readBuildContext(imageDefinitions[parent], arch)).tag];
  const hash = contentHash(files, [
    arch,
    ...below,
    ...packages.flatMap(({ file, wanted }) => [file.path, file.member ?? "", wanted.integrity]),
  ]);
  return { files, packages, tag: `${definition.repository}:${hash}` };
}

/** All files to send to the engine; fetches the packages. */
export async function completeFiles(
  { files, packages }: BuildContext,
  signal?: AbortSignal,
): Promise<TarFile[]> {
  const fetched = packages.map(async ({ file, wanted }) => ({
    path: file.path,
    mode: file.member === undefined ? 0o644 : 0o755,
    content: await readPackageFile(file, wanted, signal),
  }));
  return [...files, ...(await Promise.all(fetched))];
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

/** Only the executable bit of the mode counts: the others depend on the umask of the checkout. */
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
