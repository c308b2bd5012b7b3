import { lstat } from "node:fs/promises";
import { join, posix } from "node:path";
import { type BrigError, isBrigError } from "../../errors.js";
import { readFileStart } from "../../lib/bounded-file.js";
import { wholeEnd } from "../../lib/utf8.js";

/** Places to search for AGENTS.md files, and a limit for what is sent of them. */
export interface ProjectDocsOptions {
  /** The user's directories, such as `$BRIG_HOME`. Their first file with text precedes the project's. */
  homes: readonly string[];
  /** The most that all files of the project may have together; 0 leaves them out. Default: 32 768. */
  maxBytes?: number | undefined;
  /** Names to look for after AGENTS.override.md and AGENTS.md. Default: none. */
  fallbackFilenames?: readonly string[] | undefined;
  /**
   * Names that mark a project's root. Without one, only the working directory is searched. Default: `.git`.
   */
  rootMarkers?: readonly string[] | undefined;
  /**
   * Whether the working directory is this machine's, at the same path. If it has no such files here, the
   * search does not wait for the sandbox. Default: false.
   */
  isOnHost?: boolean | undefined;
}

/** The parts of a sandbox's files that the search needs. Paths are resolved inside the sandbox. */
export interface ProjectFiles {
  read(
    path: string,
    options: { offsetBytes: number; lengthBytes: number; signal?: AbortSignal | undefined },
  ): Promise<Uint8Array>;
  stat(
    path: string,
    options: { followSymlinks: boolean; signal?: AbortSignal | undefined },
  ): Promise<{ type: string; mode: number }>;
  list(
    path: string,
    options: { onEntries(entries: readonly unknown[]): void; signal?: AbortSignal | undefined },
  ): Promise<unknown>;
}

export interface ProjectDocs {
  /** Null if no file has text. */
  text: string | null;
  /** Names files that are not used, or only in part; for people. */
  warnings: readonly string[];
}

export interface ProjectDocsSearch extends ProjectDocsOptions {
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** Called only if there may be something to read. */
  files: () => Promise<ProjectFiles>;
  signal?: AbortSignal | undefined;
}

const DEFAULT_MAX_BYTES = 32 * 1024;
const MAX_USER_FILE_BYTES = 256 * 1024;
const DOC_NAMES = ["AGENTS.override.md", "AGENTS.md"];
const SEPARATOR = "\n\n--- project-doc ---\n\n";
const WRITE_BITS = 0o222;

/**
 * Reads AGENTS.md files: the user's from this machine, then one of each directory from the project's root
 * down to the working directory, read inside the sandbox. A file that cannot be used is a warning; only an
 * error of the sandbox itself is thrown.
 */
export async function readProjectDocs(search: ProjectDocsSearch): Promise<ProjectDocs> {
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const user = await readUserDoc(search, warn);
  const project = await readProject(search, warn);
  const parts = [user, project].filter((part) => part !== null);
  return { text: parts.length === 0 ? null : parts.join(SEPARATOR), warnings };
}

/** Whether `readProjectDocs` would need the sandbox. */
export async function asksForProjectDocs(
  search: PlacesToLook & Pick<ProjectDocsOptions, "isOnHost" | "maxBytes">,
): Promise<boolean> {
  const { isOnHost = false, maxBytes = DEFAULT_MAX_BYTES } = search;
  return maxBytes > 0 && (!isOnHost || (await seenOnHost(search)).length > 0);
}

type PlacesToLook = Pick<ProjectDocsSearch, "cwd" | "fallbackFilenames" | "rootMarkers">;
type Warn = (text: string) => void;

async function readUserDoc({ homes }: ProjectDocsSearch, warn: Warn): Promise<string | null> {
  for (const path of homes.flatMap((home) => DOC_NAMES.map((name) => join(home, name)))) {
    const file = await readFileStart(path, MAX_USER_FILE_BYTES);
    if (file.kind === "missing") continue;
    if (file.kind === "unreadable") {
      warn(`${path} is not used: it ${file.reason}`);
      continue;
    }
    const text = readable(path, file.bytes, { isCut: file.isLonger, warn }).trim();
    if (file.isLonger) warn(`${path} is cut after ${MAX_USER_FILE_BYTES} bytes`);
    if (text !== "") return text;
  }
  return null;
}

async function readProject(search: ProjectDocsSearch, warn: Warn): Promise<string | null> {
  const { cwd, isOnHost = false, maxBytes = DEFAULT_MAX_BYTES } = search;
  if (maxBytes === 0) return null;
  const seen = isOnHost ? await seenOnHost(search) : null;
  if (seen?.length === 0) return null;
  const files = await search.files();
  const directories = await projectDirectories(files, search);
  const found = await Promise.all(directories.map((directory) => findDoc(files, directory, search)));
  for (const { warnings } of found) for (const warning of warnings) warn(warning);
  for (const { directory, path, isInProject } of seen ?? []) {
    const doc = found.find((one) => one.directory === directory);
    if (doc === undefined ? isInProject : doc.file === null && doc.warnings.length === 0)
      warn(`${path} is not used: the sandbox, whose workspace is ${cwd}, does not have it`);
  }
  return joined(found, { maxBytes, warn });
}

interface SeenDoc {
  directory: string;
  path: string;
  /** Whether the directory belongs to the project, so that the sandbox should have it. */
  isInProject: boolean;
}

/**
 * Finds files that there may be to read. The host only checks whether names exist. It opens and lists
 * nothing, because an agent may have prepared the workspace.
 */
async function seenOnHost(search: PlacesToLook): Promise<SeenDoc[]> {
  const { root, furthest } = await rootOnHost(search);
  const expected = directoriesBetween(root, search.cwd);
  const seen = directoriesBetween(furthest, search.cwd).map(async (directory): Promise<SeenDoc[]> => {
    const paths = candidateNames(search).map((name) => posix.join(directory, name));
    const stats = await Promise.all(paths.map(statOnHost));
    const path = paths.find((_, index) => stats[index] !== null);
    return path === undefined ? [] : [{ directory, path, isInProject: expected.includes(directory) }];
  });
  return (await Promise.all(seen)).flat();
}

/** `furthest` is the root if what looks like a placeholder is a real marker; only the sandbox can tell. */
async function rootOnHost(search: PlacesToLook): Promise<{ root: string; furthest: string }> {
  let furthest = search.cwd;
  for (const directory of ancestors(search.cwd)) {
    const paths = markerNames(search).map((name) => posix.join(directory, name));
    const markers = (await Promise.all(paths.map(statOnHost))).filter((stat) => stat !== null);
    if (markers.length > 0) furthest = directory;
    if (markers.some((marker) => !mayBePlaceholder(marker))) return { root: directory, furthest };
  }
  return { root: search.cwd, furthest };
}

async function statOnHost(path: string): Promise<{ type: string; mode: number } | null> {
  const stat = await lstat(path).catch(() => null);
  return stat === null ? null : { type: stat.isDirectory() ? "directory" : "other", mode: stat.mode };
}

/** Ordered from the project's root down to the working directory. */
async function projectDirectories(files: ProjectFiles, search: ProjectDocsSearch): Promise<string[]> {
  const directories = ancestors(search.cwd);
  const isRoot = await Promise.all(
    directories.map(async (directory) => {
      const paths = markerNames(search).map((name) => posix.join(directory, name));
      const marks = await Promise.all(paths.map((path) => isMarker(files, path, search)));
      return marks.includes(true);
    }),
  );
  const root = directories[isRoot.indexOf(true)];
  return directoriesBetween(root ?? search.cwd, search.cwd);
}

async function isMarker(files: ProjectFiles, path: string, { signal }: ProjectDocsSearch): Promise<boolean> {
  try {
    const stat = await files.stat(path, { followSymlinks: true, signal });
    if (!mayBePlaceholder(stat)) return true;
    let isEmpty = true;
    await files.list(path, {
      onEntries: (entries) => {
        if (entries.length > 0) isEmpty = false;
      },
      signal,
    });
    return !isEmpty;
  } catch (error) {
    if (isFileError(error)) return false;
    throw error;
  }
}

/**
 * The sandbox mounts empty read-only directories as placeholders, so that an agent cannot create a `.git`.
 */
function mayBePlaceholder({ type, mode }: { type: string; mode: number }): boolean {
  return type === "directory" && (mode & WRITE_BITS) === 0;
}

interface FoundDoc {
  directory: string;
  /** Null if there is no usable file. */
  file: { path: string; bytes: Uint8Array } | null;
  warnings: readonly string[];
}

/** Reads one byte more than the limit: if that byte exists, the file is longer than what is used of it. */
async function findDoc(files: ProjectFiles, directory: string, search: ProjectDocsSearch): Promise<FoundDoc> {
  const { maxBytes = DEFAULT_MAX_BYTES, signal } = search;
  const warnings: string[] = [];
  for (const name of candidateNames(search)) {
    const path = posix.join(directory, name);
    try {
      const bytes = await files.read(path, { offsetBytes: 0, lengthBytes: maxBytes + 1, signal });
      return { directory, file: { path, bytes }, warnings };
    } catch (error) {
      if (!isFileError(error)) throw error;
      if (error.code === "file.not-found" || error.code === "file.not-directory") continue;
      warnings.push(`${path} is not used: ${error.message}`);
      if (error.code !== "file.not-regular" && error.code !== "file.is-directory") break;
    }
  }
  return { directory, file: null, warnings };
}

/** Joins the files from the root down. The file that exceeds `maxBytes` is cut between two characters. */
function joined(
  found: readonly FoundDoc[],
  { maxBytes, warn }: { maxBytes: number; warn: Warn },
): string | null {
  const texts: string[] = [];
  let left = maxBytes;
  for (const { file } of found) {
    if (file === null || isBlank(file.bytes)) continue;
    const { path } = file;
    const isCut = file.bytes.length > left;
    const bytes = file.bytes.subarray(0, left);
    if (isCut) {
      const what = left === 0 ? "left out" : `cut after ${left} bytes`;
      warn(`${path} is ${what}: project_doc_max_bytes is ${maxBytes}`);
    }
    const text = left === 0 ? "" : readable(path, bytes, { isCut, warn });
    if (text.trim() !== "") texts.push(text);
    left -= bytes.length;
  }
  return texts.length === 0 ? null : texts.join("\n\n");
}

function readable(path: string, bytes: Uint8Array, { isCut, warn }: { isCut: boolean; warn: Warn }): string {
  const { text, isValid } = decodeText(isCut ? bytes.subarray(0, wholeEnd(bytes)) : bytes);
  if (!isValid) warn(`${path} is not UTF-8 text throughout: the bytes that are not are replaced`);
  return text;
}

/** Replaces invalid bytes by U+FFFD. */
function decodeText(bytes: Uint8Array): { text: string; isValid: boolean } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), isValid: true };
  } catch {
    return { text: new TextDecoder().decode(bytes), isValid: false };
  }
}

function isBlank(bytes: Uint8Array): boolean {
  return decodeText(bytes).text.trim() === "";
}

function candidateNames({ fallbackFilenames = [] }: PlacesToLook): string[] {
  return [...new Set([...DOC_NAMES, ...fallbackFilenames.filter(isName)])];
}

function markerNames({ rootMarkers = [".git"] }: PlacesToLook): string[] {
  return rootMarkers.filter(isName);
}

function isName(text: string): boolean {
  return text.trim() !== "" && !text.includes("\0");
}

/** Ordered from the directory itself up to `/`. */
function ancestors(directory: string): string[] {
  const parent = posix.dirname(directory);
  return parent === directory ? [directory] : [directory, ...ancestors(parent)];
}

function directoriesBetween(root: string, directory: string): string[] {
  const all = ancestors(directory);
  return all.slice(0, all.indexOf(root) + 1).toReversed();
}

function isFileError(error: unknown): error is BrigError {
  return isBrigError(error) && error.code.startsWith("file.");
}
