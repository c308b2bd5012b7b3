import { type BytePath, listNames, lstatOrNull, readSmallFile, stepsTo } from "./byte-paths.js";
import { cannotProtect } from "./protected-set.js";

/** Entries that lead out of a git directory. */
export interface GitDirectoryContents {
  links: BytePath[];
  hardLinked: HardLinkedFile[];
  /** Git directories of submodules and linked work trees, perhaps also the directory itself. */
  repositories: BytePath[];
}

export interface HardLinkedFile {
  path: BytePath;
  /** Device and inode, which identify the file. */
  file: string;
  linkCount: number;
}

/** Reads a directory tree; also takes a single file. Throws the file system's own errors. */
export function readGitDirectory(directory: BytePath): GitDirectoryContents {
  const contents: GitDirectoryContents = { links: [], hardLinked: [], repositories: [] };
  const isDirectory = lstatOrNull(directory)?.isDirectory() === true;
  if (!isDirectory) addIfHardLinked(directory, contents);
  const open = isDirectory ? [directory] : [];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const names = new Set<string>();
    for (const entry of listNames(path)) {
      const child = `${path}/${entry.name}`;
      names.add(entry.name);
      if (entry.isDirectory()) open.push(child);
      else if (entry.isSymbolicLink()) contents.links.push(child);
      else addIfHardLinked(child, contents);
    }
    const isRepository =
      names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
    if (isRepository) contents.repositories.push(path);
  }
  return contents;
}

function addIfHardLinked(path: BytePath, { hardLinked }: GitDirectoryContents): void {
  const stat = lstatOrNull(path);
  if (stat === null || stat.nlink < 2n) return;
  hardLinked.push({ path, file: `${stat.dev}:${stat.ino}`, linkCount: Number(stat.nlink) });
}

const POINTER_MAX_BYTES = 64 * 1024;

/** Reads a file that names a path, such as `commondir`; null if absent. Error: `policy.not-enforced`. */
export function readPointer(file: BytePath): string | null {
  const bytes = attempt(file, () => readSmallFile(stepsTo(file).at(-1)?.path ?? file, POINTER_MAX_BYTES));
  if (typeof bytes === "string") throw cannotProtect(file, "it is not a small regular file");
  return bytes === null ? null : bytes.toString("latin1");
}

function attempt<T>(file: BytePath, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw cannotProtect(file, "it cannot be read, so what it points to is unknown", cause);
  }
}

/** Parses `objects/info/alternates`: one path per line, which may be quoted as in C. */
export function parseAlternates(text: string): BytePath[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => (line.startsWith('"') ? unquoted(line) : line));
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

function unquoted(line: string): string {
  return line
    .replace(/^"|"$/g, "")
    .replace(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8) & 255) : (ESCAPES[code] ?? code),
    );
}
