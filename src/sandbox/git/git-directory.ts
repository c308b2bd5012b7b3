import { type BytePath, listNames, lookAt, readSmall, stepsTo } from "./host-names.js";

/** What a directory with a repository's files holds that leads out of it. */
export interface GitDirectoryContents {
  /** Symbolic links, wherever they lead. */
  links: BytePath[];
  /** Files with more names than one. */
  linkedFiles: LinkedFile[];
  /** Directories that are a repository's own, this one perhaps among them: submodules and work trees have theirs in here. */
  repositories: BytePath[];
}

export interface LinkedFile {
  path: BytePath;
  /** Device and inode. */
  file: string;
  /** How many names it has. */
  names: number;
}

/** Looks through all of it; what is a file is looked at alone. Throws what the file system says. */
export function readGitDirectory(directory: BytePath): GitDirectoryContents {
  const contents: GitDirectoryContents = { links: [], linkedFiles: [], repositories: [] };
  const isDirectory = lookAt(directory)?.isDirectory() === true;
  if (!isDirectory) noteLinked(directory, contents);
  const open = isDirectory ? [directory] : [];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const names = new Set<string>();
    for (const entry of listNames(path)) {
      const child = `${path}/${entry.name}`;
      names.add(entry.name);
      if (entry.isDirectory()) open.push(child);
      else if (entry.isSymbolicLink()) contents.links.push(child);
      else noteLinked(child, contents);
    }
    const isRepository =
      names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
    if (isRepository) contents.repositories.push(path);
  }
  return contents;
}

function noteLinked(path: BytePath, { linkedFiles }: GitDirectoryContents): void {
  const stat = lookAt(path);
  if (stat === null || stat.nlink < 2n) return;
  linkedFiles.push({ path, file: `${stat.dev}:${stat.ino}`, names: Number(stat.nlink) });
}

const POINTER_MAX_BYTES = 64 * 1024;

/** A file that holds a path, such as `.git` or `commondir`. */
export type Pointer =
  | { kind: "absent" }
  | { kind: "unreadable"; reason: string; cause?: unknown }
  | { kind: "text"; text: string };

export function readPointer(file: BytePath): Pointer {
  try {
    const bytes = readSmall(stepsTo(file).at(-1)?.path ?? file, POINTER_MAX_BYTES);
    if (bytes === null) return { kind: "absent" };
    if (typeof bytes === "string") return { kind: "unreadable", reason: "it is not a small regular file" };
    return { kind: "text", text: bytes.toString("latin1") };
  } catch (cause) {
    return { kind: "unreadable", reason: "it cannot be read, so what it points to is unknown", cause };
  }
}

/** The paths in `objects/info/alternates`: one a line, and one that begins with a quotation mark is quoted as in C. */
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
