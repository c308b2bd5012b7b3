import type { Dirent, Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../../errors.js";
import { readTextFile } from "../../../../lib/bounded-file.js";
import { formatBytes } from "../../../../lib/bytes.js";
import { errnoOf } from "../../../../lib/errno.js";
import { type IgnorePatterns, parseIgnorePatterns } from "./ignore-patterns.js";

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

async function readPatterns({ directory, dockerfile }: ContextSource): Promise<IgnorePatterns> {
  const path = join(directory, ignoreFile);
  const facts = await lstat(path).catch(() => null);
  if (facts === null) return parseIgnorePatterns("", []);
  const read = facts.isFile()
    ? await readTextFile(path, maxIgnoreFileBytes)
    : ({ kind: "unreadable", reason: "is not a regular file" } as const);
  if (read.kind === "text") return parseIgnorePatterns(read.text, [dockerfile, ignoreFile]);
  throw unreadable(path, read.kind === "missing" ? "was removed" : read.reason);
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
