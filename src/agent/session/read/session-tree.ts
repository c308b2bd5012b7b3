import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { z } from "zod";
import { isBrigError } from "../../../errors.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { ToolSandbox } from "../../../tools/index.js";
import type { SessionRecord } from "../write/session-file.js";

/** The parts of a sandbox's files that describing a tree needs. Paths are resolved inside the sandbox. */
interface TreeFiles {
  list(
    path: string,
    options: {
      onEntries(entries: readonly { nameBytes: Uint8Array; type: string }[]): void;
      signal?: AbortSignal | undefined;
    },
  ): Promise<unknown>;
  stat(
    path: string,
    options: { followSymlinks: boolean; signal?: AbortSignal | undefined },
  ): Promise<{ type: string; mode: number; linkTarget?: string | null }>;
  read(
    path: string,
    options: { offsetBytes: number; lengthBytes: number; signal?: AbortSignal | undefined },
  ): Promise<Uint8Array>;
}

export interface TreeSandbox extends Pick<ToolSandbox, "spawn"> {
  readonly files: TreeFiles;
}

/**
 * The files of a directory by path, each with its type and a hash of its content; or why they were left out.
 */
export type TreeDescription =
  | { kind: "described"; root: string; entries: Readonly<Record<string, string>> }
  | { kind: "left-out"; root: string; reason: string };

export interface TreeLimits {
  maxFiles: number;
  maxBytes: number;
  maxMs: number;
}

/** Limits at the end of a session, which nobody should have to wait for. */
export const recordedTreeLimits: TreeLimits = { maxFiles: 2000, maxBytes: 32 * 1024 * 1024, maxMs: 2000 };
/** Limits for a comparison that a person has asked for. */
export const comparedTreeLimits: TreeLimits = { ...recordedTreeLimits, maxMs: 60_000 };

/** `.git` contains times and inode numbers, which differ in every copy. */
const leftOutNames: readonly string[] = [".git"];

/** From this number of files on, starting a program of the image is faster than reading each file. */
const MIN_FILES_FOR_PROGRAMS = 50;
const PIECE_BYTES = 256 * 1024;
const CONCURRENT_READS = 16;
const SHOWN_HASH_DIGITS = 24;

/**
 * Describes the files below a directory of the sandbox: whether each is executable, and a hash of its content
 * or of a link's target. Directories appear only in the paths, and `.git` not at all. A tree beyond the
 * limits is left out.
 */
export async function describeTree(
  sandbox: TreeSandbox,
  root: string,
  { limits, signal }: { limits: TreeLimits; signal?: AbortSignal | undefined },
): Promise<TreeDescription> {
  using limit = new TimeLimit(limits.maxMs, signal);
  try {
    const walk = new TreeWalk(sandbox, root, { limits, signal: limit.signal });
    return { kind: "described", root, entries: await walk.run() };
  } catch (error) {
    signal?.throwIfAborted();
    if (limit.isOver) return leftOut(root, `it takes more than ${limits.maxMs / 1000} seconds to read`);
    if (error instanceof TreeTooLarge) return leftOut(root, error.message);
    if (isBrigError(error)) return leftOut(root, error.message);
    throw error;
  }
}

export function treeRecord(tree: TreeDescription): SessionRecord {
  const { kind, ...rest } = tree;
  return { type: "brig.tree", payload: { state: kind, ...rest, left_out_names: leftOutNames } };
}

const treePayload = z.discriminatedUnion("state", [
  z.object({ state: z.literal("described"), root: z.string(), entries: z.record(z.string(), z.string()) }),
  z.object({ state: z.literal("left-out"), root: z.string(), reason: z.string() }),
]);

/** Returns null for a payload that is not valid. */
export function readTreeRecord(payload: unknown): TreeDescription | null {
  const { data } = treePayload.safeParse(payload);
  if (data === undefined) return null;
  const { state: kind, ...tree } = data;
  return { kind, ...tree } as TreeDescription;
}

export interface TreeDifference {
  path: string;
  kind: "added" | "missing" | "changed";
}

/** Compares two trees; `added` means that only `other` has the path. */
export function treeDifferences(
  tree: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): TreeDifference[] {
  const paths = [...new Set([...Object.keys(tree), ...Object.keys(other)])].toSorted();
  return paths.flatMap((path): TreeDifference[] => {
    const [before, after] = [own(tree, path), own(other, path)];
    if (before === after) return [];
    return [{ path, kind: before === undefined ? "added" : after === undefined ? "missing" : "changed" }];
  });
}

function own(entries: Readonly<Record<string, string>>, path: string): string | undefined {
  return Object.hasOwn(entries, path) ? entries[path] : undefined;
}

class TreeTooLarge extends Error {}

class TreeWalk {
  readonly #sandbox: TreeSandbox;
  readonly #root: string;
  readonly #limits: TreeLimits;
  readonly #signal: AbortSignal;
  readonly #entries = new Map<string, string>();
  /** Filled by programs of the image if the tree is large enough to be worth starting them. */
  #hashes = new Map<string, string>();
  #facts = new Map<string, FileFacts>();
  #bytes = 0;
  #found = 0;

  constructor(
    sandbox: TreeSandbox,
    root: string,
    { limits, signal }: { limits: TreeLimits; signal: AbortSignal },
  ) {
    this.#sandbox = sandbox;
    this.#root = root;
    this.#limits = limits;
    this.#signal = signal;
  }

  async run(): Promise<Record<string, string>> {
    const paths = await this.#paths();
    if (paths.length >= MIN_FILES_FOR_PROGRAMS) await this.#runPrograms(paths);
    const next = paths.values();
    const worker = async () => {
      for (const path of next) this.#entries.set(path, await this.#describe(path));
    };
    await Promise.all(Array.from({ length: CONCURRENT_READS }, worker));
    return Object.fromEntries([...this.#entries].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  async #runPrograms(paths: readonly string[]): Promise<void> {
    const request = { sandbox: this.#sandbox, root: this.#root, signal: this.#signal };
    this.#facts = await statFiles(paths, request);
    for (const { sizeBytes } of this.#facts.values()) this.#addBytes(sizeBytes);
    this.#hashes = await hashFiles([...this.#facts.keys()], request);
    this.#signal.throwIfAborted();
  }

  async #paths(): Promise<string[]> {
    const paths: string[] = [];
    let level = [""];
    while (level.length > 0) {
      const below = await Promise.all(level.map((folder) => this.#list(folder, paths)));
      level = below.flat();
    }
    return paths;
  }

  /** Adds a folder's files to `paths`, relative to the root, and returns its folders. */
  async #list(folder: string, paths: string[]): Promise<string[]> {
    const folders: string[] = [];
    await this.#sandbox.files.list(this.#absolute(folder), {
      signal: this.#signal,
      onEntries: (entries) => {
        for (const { nameBytes, type } of entries) {
          const name = Buffer.from(nameBytes).toString("utf8");
          if (leftOutNames.includes(name)) continue;
          this.#count();
          const path = folder === "" ? name : `${folder}/${name}`;
          if (type === "directory") folders.push(path);
          else paths.push(path);
        }
      },
    });
    this.#signal.throwIfAborted();
    return folders;
  }

  #count(): void {
    this.#found++;
    if (this.#found > this.#limits.maxFiles)
      throw new TreeTooLarge(`it has more than ${this.#limits.maxFiles} files`);
  }

  async #describe(path: string): Promise<string> {
    const known = this.#facts.get(path);
    const hashed = this.#hashes.get(path);
    if (known !== undefined && hashed !== undefined) return fileEntry(known.isProgram, hashed);
    const absolute = this.#absolute(path);
    const signal = this.#signal;
    try {
      const { type, mode, linkTarget } = await this.#sandbox.files.stat(absolute, {
        followSymlinks: false,
        signal,
      });
      if (type === "symlink") return `link ${hash(Buffer.from(linkTarget ?? ""))}`;
      if (type !== "file") return type;
      return fileEntry((mode & 0o111) !== 0, await this.#contentHash(absolute));
    } catch (error) {
      signal.throwIfAborted();
      if (isBrigError(error) && error.code.startsWith("file.")) return "unreadable";
      throw error;
    }
  }

  async #contentHash(path: string): Promise<string> {
    const digest = createHash("sha256");
    for (let offsetBytes = 0; ; ) {
      const options = { offsetBytes, lengthBytes: PIECE_BYTES, signal: this.#signal };
      const piece = await this.#sandbox.files.read(path, options);
      digest.update(piece);
      offsetBytes += piece.length;
      this.#addBytes(piece.length);
      if (piece.length < PIECE_BYTES) return digest.digest("hex");
    }
  }

  #addBytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#limits.maxBytes)
      throw new TreeTooLarge(`it has more than ${this.#limits.maxBytes / 1024 / 1024} MiB`);
  }

  #absolute(path: string): string {
    return path === "" ? this.#root : `${this.#root === "/" ? "" : this.#root}/${path}`;
  }
}

function fileEntry(isProgram: boolean, hash: string): string {
  return `${isProgram ? "program" : "file"} ${hash.slice(0, SHOWN_HASH_DIGITS)}`;
}

function hash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, SHOWN_HASH_DIGITS);
}

function leftOut(root: string, reason: string): TreeDescription {
  return { kind: "left-out", root, reason };
}

interface FileFacts {
  isProgram: boolean;
  sizeBytes: number;
}

interface ProgramRequest {
  sandbox: Pick<ToolSandbox, "spawn">;
  /** The directory that the names are relative to. */
  root: string;
  signal: AbortSignal;
}

/** More than a program prints about the largest tree that is described. */
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
const REGULAR = 0o100000;
const TYPE_BITS = 0o170000;

/**
 * Runs the image's `stat` once for all files, and returns the modes and sizes of regular files. Missing
 * files, names that do not fit a line, and all files of an image without `stat` are left out.
 */
async function statFiles(names: readonly string[], request: ProgramRequest): Promise<Map<string, FileFacts>> {
  const facts = new Map<string, FileFacts>();
  for (const line of await runOnFiles(["stat", "-c", "%f %s %n"], names, request)) {
    const [, mode, size, name] = /^([0-9a-f]+) (\d+) \.\/(.*)$/.exec(line) ?? [];
    if (mode === undefined || size === undefined || name === undefined) continue;
    const bits = Number.parseInt(mode, 16);
    if ((bits & TYPE_BITS) !== REGULAR) continue;
    facts.set(name, { isProgram: (bits & 0o111) !== 0, sizeBytes: Number(size) });
  }
  return facts;
}

/** Runs the image's `sha256sum` likewise, and returns the files' hashes in hexadecimal. */
async function hashFiles(names: readonly string[], request: ProgramRequest): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  for (const line of await runOnFiles(["sha256sum"], names, request)) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}

/** Returns the lines that a program prints about all files. */
async function runOnFiles(
  program: readonly string[],
  names: readonly string[],
  { sandbox, root, signal }: ProgramRequest,
): Promise<string[]> {
  const asked = names.filter(fitsLine).map((name) => `./${name}\0`);
  if (asked.length === 0) return [];
  const running = await sandbox.spawn(["xargs", "-0", ...program], { cwd: root, signal });
  running.stderr?.resume();
  // A program that ended early closes its standard input.
  running.stdin?.on("error", () => undefined);
  running.stdin?.end(asked.join(""));
  const text = await readAll(running.stdout);
  await running.exit;
  return text.split("\n");
}

/** Programs escape or break other names. */
function fitsLine(name: string): boolean {
  return !/[\n\\\ufffd]/.test(name);
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
