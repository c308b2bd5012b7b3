import type { Dirent, Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { formatBytes } from "../../../lib/bytes.js";
import { errnoOf } from "../../../lib/errno.js";

/** Entry of a build context. Paths are relative to its directory, with slashes. */
export type ContextEntry = { path: string /** Permission bits. */; mode: number } & (
  | { kind: "file"; sizeBytes: number }
  | { kind: "directory" }
  | { kind: "link"; target: string }
);

export interface ContextLimits {
  maxBytes: number;
  maxEntries: number;
}

export const defaultContextLimits: ContextLimits = { maxBytes: 4 * 1024 ** 3, maxEntries: 200_000 };

const ignoreFile = ".dockerignore";
const maxIgnoreFileBytes = 1024 * 1024;

export interface ContextSource {
  /** Absolute. */
  directory: string;
  /** Relative to the directory; it must be a regular file, and so must not be behind a link. */
  dockerfile: string;
}

/**
 * Lists what Docker's client would send, in the order of the paths' bytes. Links are listed as links. Error:
 * `image.build-failed` for special files, for what cannot be read, and above the limits.
 */
export async function walkContext(source: ContextSource, limits: ContextLimits): Promise<ContextEntry[]> {
  const walk: Walk = { source, limits, patterns: await readPatterns(source), entries: [], bytes: 0 };
  await walkDirectory(walk, "");
  if (walk.entries.some(({ path, kind }) => kind === "file" && path === source.dockerfile))
    return walk.entries;
  throw new BrigError(
    `${join(source.directory, source.dockerfile)} is no regular file of the build context`,
    {
      code: "image.build-failed",
      hint: "brig follows no links to a Dockerfile",
    },
  );
}

interface Walk {
  source: ContextSource;
  limits: ContextLimits;
  patterns: IgnorePatterns;
  entries: ContextEntry[];
  bytes: number;
}

/** A Dockerfile may have an ignore file of its own, which then is the only one. */
async function readPatterns({ directory, dockerfile }: ContextSource): Promise<IgnorePatterns> {
  for (const name of [`${dockerfile}${ignoreFile}`, ignoreFile]) {
    const path = join(directory, name);
    const facts = await lstat(path).catch(() => null);
    if (facts === null) continue;
    const read = facts.isFile()
      ? await readTextFile(path, maxIgnoreFileBytes)
      : ({ kind: "unreadable", reason: "is not a regular file" } as const);
    // The engine would obey the other one, if it was sent as well.
    const more = name === ignoreFile ? "" : `\n${ignoreFile}\n`;
    if (read.kind === "text") return parseIgnorePatterns(read.text + more, [dockerfile, name]);
    throw unreadable(path, read.kind === "missing" ? "was removed" : read.reason);
  }
  return parseIgnorePatterns("", []);
}

async function walkDirectory(walk: Walk, below: string): Promise<void> {
  const directory = join(walk.source.directory, below);
  for (const name of await sortedNames(directory)) {
    const path = below === "" ? name : `${below}/${name}`;
    const isIgnored = walk.patterns.ignores(path);
    if (isIgnored && !walk.patterns.hasExceptions) continue;
    const facts = await factsOf(join(directory, name));
    if (!isIgnored) add(walk, await entryOf(walk, path, facts));
    if (facts.isDirectory()) await walkDirectory(walk, path);
  }
}

async function sortedNames(directory: string): Promise<string[]> {
  let found: Dirent[];
  try {
    found = await readdir(directory, { withFileTypes: true });
  } catch (cause) {
    throw unreadable(directory, `cannot be read: ${errnoOf(cause) ?? "unknown error"}`, cause);
  }
  return found.map(({ name }) => name).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

async function factsOf(path: string): Promise<Stats> {
  try {
    return await lstat(path);
  } catch (cause) {
    throw unreadable(path, `cannot be read: ${errnoOf(cause) ?? "unknown error"}`, cause);
  }
}

async function entryOf({ source }: Walk, path: string, facts: Stats): Promise<ContextEntry> {
  const mode = facts.mode & 0o7777;
  if (facts.isFile()) return { kind: "file", path, mode, sizeBytes: facts.size };
  if (facts.isDirectory()) return { kind: "directory", path, mode };
  const absolute = join(source.directory, path);
  if (facts.isSymbolicLink()) return { kind: "link", path, mode: 0o777, target: await readlink(absolute) };
  throw unreadable(absolute, `is a ${specialKind(facts)}, which no image can be built with`);
}

function specialKind(facts: Stats): string {
  if (facts.isFIFO()) return "FIFO";
  if (facts.isSocket()) return "socket";
  return "device";
}

function add(walk: Walk, entry: ContextEntry): void {
  const { limits, entries, source } = walk;
  entries.push(entry);
  if (entry.kind === "file") walk.bytes += entry.sizeBytes;
  if (walk.bytes > limits.maxBytes)
    throw tooLarge(source, `has more than ${formatBytes(limits.maxBytes)} at ${entry.path}`);
  if (entries.length > limits.maxEntries)
    throw tooLarge(source, `has more than ${limits.maxEntries} files at ${entry.path}`);
}

function tooLarge({ directory }: ContextSource, words: string): BrigError {
  return new BrigError(`the build context ${directory} ${words}`, {
    code: "image.build-failed",
    hint: "leave out what the image does not need with a .dockerignore file",
  });
}

function unreadable(path: string, words: string, cause?: unknown): BrigError {
  return new BrigError(`${path} ${words}`, {
    code: "image.build-failed",
    hint: "remove it, or leave it out with a .dockerignore file",
    cause,
  });
}

/** The patterns of a `.dockerignore` file, in order: the last one that matches decides. */
interface IgnorePatterns {
  /** `path` is relative to the context, with slashes. */
  ignores(path: string): boolean;
  /** False if everything below an ignored directory is ignored too. */
  readonly hasExceptions: boolean;
}

interface Pattern {
  isException: boolean;
  expression: RegExp;
}

/** These files are always sent: the engine itself leaves them out of the image where the patterns say so. */
export function parseIgnorePatterns(text: string, alwaysSent: readonly string[]): IgnorePatterns {
  const patterns = [
    ...text
      .replace(/^\uFEFF/, "")
      .split("\n")
      .flatMap(parseLine),
    ...alwaysSent.map((path) => ({ isException: true, expression: literally(path) })),
  ];
  return {
    hasExceptions: patterns.some(({ isException }) => isException),
    ignores(path) {
      const names = path.split("/");
      // A pattern that matches a directory matches everything in it.
      const candidates = names.map((_, index) => names.slice(0, index + 1).join("/"));
      const last = patterns.findLast(({ expression }) => candidates.some((one) => expression.test(one)));
      return last !== undefined && !last.isException;
    },
  };
}

function parseLine(line: string, index: number): Pattern[] {
  // Only a number sign in the first column begins a comment.
  if (line.startsWith("#")) return [];
  const trimmed = line.trim();
  const isException = trimmed.startsWith("!");
  const written = isException ? trimmed.slice(1).trim() : trimmed;
  if (written === "") {
    if (isException) throw invalid(line, index);
    return [];
  }
  const pattern = posix
    .normalize(written)
    .replace(/^\/(?=.)/, "")
    .replace(/(?<=.)\/$/, "");
  // A pattern for the context itself matches nothing, as in Docker.
  if (pattern === "." || pattern === "/") return [];
  try {
    return [{ isException, expression: new RegExp(`^${sourceOf(pattern)}$`, "s") }];
  } catch (cause) {
    throw invalid(line, index, cause);
  }
}

const piece = /\*\*\/?|\*|\?|\\.|\[(?:\^?)(?:\\.|[^\]\\])+\]|./gs;

/** Translates Docker's wildcards: `*` and `?` match no slash, `**` matches any number of directories. */
function sourceOf(pattern: string): string {
  const pieces = pattern.match(piece) ?? [];
  return pieces
    .map((text, index) => {
      if (text.startsWith("**")) return index === pieces.length - 1 ? ".*" : "(?:.*/)?";
      if (text === "*") return "[^/]*";
      if (text === "?") return "[^/]";
      if (text === "[") throw new SyntaxError("a bracket is not closed");
      if (text.startsWith("[")) return text;
      return escaped(text.startsWith("\\") && text.length > 1 ? text.slice(1) : text);
    })
    .join("");
}

function literally(path: string): RegExp {
  return new RegExp(`^${escaped(path)}$`);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function invalid(line: string, index: number, cause?: unknown): BrigError {
  return new BrigError(`line ${index + 1} of .dockerignore is no valid pattern: ${JSON.stringify(line)}`, {
    code: "image.build-failed",
    hint: "close brackets, and give each exclamation mark a pattern",
    cause,
  });
}
