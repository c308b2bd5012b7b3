import { lstat, open, readdir, readlink, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { readStart } from "../../lib/bounded-file.js";
import type { ContainerChange, PatchSide, ReceivedEntry } from "../../sandbox/index.js";
import { isRefusedByGit, readTar, unifiedText } from "../../sandbox/index.js";
import { isReserved } from "./artifacts/artifact-paths.js";
import { ImageFiles, ofFirstEntry } from "./place/image-files.js";
import type { RecordedPlace } from "./place/never-started.js";

export const CHANGES_FILE = "changes.diff";

/** The engine takes a while for each file, and an attempt waits for it. */
const LONGEST_MS = 30_000;

const defaultLimits = { files: 1000, bytes: 8 * 1024 * 1024 };

export interface ChangesRequest {
  imageId: string;
  /** Changes in the container, at least those below `cwd`. */
  changes: readonly ContainerChange[];
  /** Directory in the container to which the patch is relative. */
  cwd: string;
  /** Directories of the host whose contents were copied to `cwd`, in this order. Their files are no changes. */
  copied: readonly string[];
  /** Folder on the host. Gets `changes.diff`. */
  folder: string;
  limits?: { files: number; bytes: number } | undefined;
  signal?: AbortSignal | undefined;
}

interface StoppedContainer extends RecordedPlace {
  containerId: string;
}

/**
 * Writes what was changed below the working directory of a stopped container, as a patch in git's format, with contents
 * from the engine; no program of the container takes part. Too large files, and everything beyond a limit, are
 * only counted, in the last line. Resolves to whether anything was changed; otherwise there is no file. Errors: the
 * engine's, and those of the host's file system.
 */
export async function writeChanges(stopped: StoppedContainer, request: ChangesRequest): Promise<boolean> {
  const { cwd, signal, folder } = request;
  const changed = changedPaths(request.changes, cwd);
  if (changed.length === 0 && request.copied.length === 0) return false;
  await using image = new ImageFiles(stopped, request.imageId);
  const patch = new Patch(request.limits ?? defaultLimits);
  const sources: Sources = { ...request, stopped, image };
  const until = performance.now() + LONGEST_MS;
  for (const one of changed) {
    signal?.throwIfAborted();
    if (patch.isFull || performance.now() > until || isUnnamed(one)) patch.leaveOut();
    else await addChange(patch, one, sources);
  }
  await addDeletedCopies(patch, sources, new Set(changed.map(({ name }) => name)));
  if (patch.isEmpty) return false;
  await writeFile(join(folder, CHANGES_FILE), patch.text(), { mode: 0o600 });
  return true;
}

interface Sources extends Pick<ChangesRequest, "cwd" | "copied" | "signal"> {
  stopped: StoppedContainer;
  image: ImageFiles;
}

async function addChange(patch: Patch, { kind, path, name }: ChangedPath, sources: Sources): Promise<void> {
  const { image, stopped, signal } = sources;
  if (kind === "deleted") {
    await addDeleted(patch, path, sources);
    return;
  }
  const archive = await stopped.engine.readArchive(stopped.containerId, path, signal && { signal });
  const after = await firstSide(archive);
  const copied = await sideCopied(sources.copied, name);
  const isNew = kind === "added" ? { kind: "none" as const } : null;
  const before = copied ?? isNew ?? (await firstSide(await image.read(path, signal)));
  if (copied === null && before.kind === "directory" && after.kind !== "directory") {
    const isEmptied = await addDeleted(patch, path, sources);
    // Git makes no file where a directory is left.
    if (after.kind === "side" && !isEmptied) return patch.leaveOut();
  }
  patch.add(name, before, after);
}

/** Deletes a file of the image, or all files in one of its directories. Returns whether git then leaves nothing of it. */
async function addDeleted(patch: Patch, path: string, { image, cwd, signal }: Sources): Promise<boolean> {
  const limit = patch.filesLeft + 1;
  const sides = await sidesBelow(await image.read(path, signal), path, limit);
  for (const [each, side] of sides) patch.add(posix.relative(cwd, each), side, { kind: "none" });
  if (sides.size >= limit) patch.leaveOut();
  const isKnown = ([each, { kind }]: [string, FoundSide]) =>
    kind === "directory" ? [...sides.keys()].some((one) => one.startsWith(`${each}/`)) : kind === "side";
  const isRefused = ([each]: [string, FoundSide]) => isRefusedByGit(Buffer.from(each), { isLink: true });
  return sides.size < limit && [...sides].every((one) => isKnown(one) && !isRefused(one));
}

/** The file of this name in the last of the directories that has one; null if none has. */
async function sideCopied(directories: readonly string[], name: string): Promise<FoundSide | null> {
  for (const directory of directories.toReversed()) {
    const side = await sideOnHost(join(directory, name));
    if (side.kind !== "none") return side;
  }
  return null;
}

/** Adds files that were copied into the container and then deleted: to the engine they never existed. */
async function addDeletedCopies(
  patch: Patch,
  { copied }: Sources,
  changed: ReadonlySet<string>,
): Promise<void> {
  const names = new Set<string>();
  for (const directory of copied) for await (const name of filesOnHost(directory)) names.add(name);
  for (const name of names) {
    if (changed.has(name)) continue;
    if (patch.isFull) patch.leaveOut();
    else patch.add(name, (await sideCopied(copied, name)) ?? { kind: "none" }, { kind: "none" });
  }
}

class Patch {
  readonly #limits: { files: number; bytes: number };
  /** Pieces by their names. A file in a directory may be found both with it and by itself. */
  readonly #pieces = new Map<string, string>();
  #bytes = 0;
  #leftOut = 0;

  constructor(limits: { files: number; bytes: number }) {
    this.#limits = limits;
  }

  get isFull(): boolean {
    return this.filesLeft === 0 || this.#bytes >= this.#limits.bytes;
  }

  get filesLeft(): number {
    return Math.max(0, this.#limits.files - this.#pieces.size);
  }

  get isEmpty(): boolean {
    return this.#pieces.size === 0 && this.#leftOut === 0;
  }

  leaveOut(): void {
    this.#leftOut++;
  }

  add(name: string, before: FoundSide, after: FoundSide): void {
    const isTooLarge = before.kind === "too-large" || after.kind === "too-large";
    const [old, current] = [patchSide(before), patchSide(after)];
    const isSame = (old === null && current === null) || areEqual(old, current);
    const isLink = [old, current].some((side) => side?.gitMode === "120000");
    if ((isSame && !isTooLarge) || this.#pieces.has(name)) return;
    if (isRefusedByGit(Buffer.from(name), { isLink })) return;
    const text = isTooLarge ? "" : unifiedText({ path: name, before: old, after: current }).text;
    const bytes = Buffer.byteLength(text);
    if (isTooLarge || this.#bytes + bytes > this.#limits.bytes) {
      this.leaveOut();
      return;
    }
    this.#bytes += bytes;
    this.#pieces.set(name, text);
  }

  text(): string {
    const sorted = [...this.#pieces].toSorted(([one], [other]) => (one < other ? -1 : 1));
    const note =
      this.#leftOut === 0
        ? ""
        : `# ${this.#leftOut} more changes are left out, because they are too large or too many\n`;
    return sorted.map(([, text]) => text).join("") + note;
  }
}

function patchSide(found: FoundSide): PatchSide | null {
  return found.kind === "side" ? found.side : null;
}

function areEqual(one: PatchSide | null, other: PatchSide | null): boolean {
  return one !== null && other !== null && one.gitMode === other.gitMode && one.content.equals(other.content);
}

/** Directories whose changes are no work on the task, for containers whose working directory is `/`. */
const UNINTERESTING = ["/logs", "/tmp", "/run", "/var/log", "/var/cache", "/root/.cache"];

interface ChangedPath {
  kind: ContainerChange["kind"];
  /** Absolute in the container. */
  path: string;
  /** Path below the working directory. */
  name: string;
}

/**
 * The changed files below the working directory; of directories only what is in them, and what was deleted. The
 * administrative files of git are left out. Changed and deleted ones come first: of added ones there may be thousands,
 * such as installed packages. Last come directories with changes in them, which may have been files or links before.
 */
export function changedPaths(changes: readonly ContainerChange[], cwd: string): ChangedPath[] {
  const root = cwd === "/" ? "/" : `${cwd}/`;
  const present = changes.filter(({ kind }) => kind !== "deleted");
  const directories = new Set(present.map(({ path }) => posix.dirname(path)));
  const found = changes.flatMap(({ kind, path }): ChangedPath[] => {
    if (!path.startsWith(root) || isReserved(path)) return [];
    if (kind === "added" && directories.has(path)) return [];
    const name = path.slice(root.length);
    if (!isBelow(name) || isRefusedByGit(Buffer.from(name), { isLink: false })) return [];
    if (cwd === "/" && UNINTERESTING.some((one) => path === one || path.startsWith(`${one}/`))) return [];
    return [{ kind, path, name }];
  });
  const rank = ({ kind, path }: ChangedPath) =>
    kind === "changed" && directories.has(path) ? 2 : kind === "added" ? 1 : 0;
  return found.toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

function isBelow(name: string): boolean {
  return name.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/** The engine writes U+FFFD in place of bytes that are no text, so nobody can tell which file it is. */
export function isUnnamed({ name }: Pick<ChangedPath, "name">): boolean {
  return name.includes("\uFFFD");
}

/** A longer file is only named. */
const MAX_FILE_BYTES = 1024 * 1024;

type FoundSide =
  | { kind: "none" }
  | { kind: "directory" }
  /** A device, FIFO or socket, which a patch cannot show. */
  | { kind: "other" }
  | { kind: "too-large"; sizeBytes: number }
  | { kind: "side"; side: PatchSide };

async function firstSide(archive: Readable | null): Promise<FoundSide> {
  return (await ofFirstEntry(archive, sideOf)) ?? { kind: "none" };
}

/** All that is in the archive of a directory at this path of a container, by its paths in it; at most `limit`. */
async function sidesBelow(
  archive: Readable | null,
  path: string,
  limit: number,
): Promise<Map<string, FoundSide>> {
  const sides = new Map<string, FoundSide>();
  if (archive === null) return sides;
  for await (const entry of readTar(archive)) {
    if (sides.size >= limit) break;
    const inside = posix.join(posix.dirname(path), entry.path).replace(/\/$/, "");
    sides.set(inside, await sideOf(entry));
  }
  return sides;
}

async function sideOf({ kind, sizeBytes, mode, target, content }: ReceivedEntry): Promise<FoundSide> {
  if (kind === "directory") return { kind };
  if (kind === "symbolic-link") return { kind: "side", side: linkSide(Buffer.from(target ?? "")) };
  if (kind !== "file") return { kind: "other" };
  if (sizeBytes > MAX_FILE_BYTES) return { kind: "too-large", sizeBytes };
  return { kind: "side", side: { gitMode: gitModeOf(mode), content: await buffer(content) } };
}

/** A file of the host that was copied to the container; "none" if there is no such file. */
async function sideOnHost(path: string): Promise<FoundSide> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return { kind: "none" };
  if (found.isDirectory()) return { kind: "directory" };
  if (found.isSymbolicLink())
    return { kind: "side", side: linkSide(await readlink(path, { encoding: "buffer" })) };
  if (!found.isFile()) return { kind: "other" };
  if (found.size > MAX_FILE_BYTES) return { kind: "too-large", sizeBytes: found.size };
  const file = await open(path, "r");
  try {
    const content = await readStart(file, MAX_FILE_BYTES);
    return { kind: "side", side: { gitMode: gitModeOf(found.mode), content } };
  } finally {
    await file.close();
  }
}

/** The files below a directory of the host, relative to it. */
async function* filesOnHost(directory: string, below = ""): AsyncGenerator<string> {
  for (const entry of await readdir(join(directory, below), { withFileTypes: true })) {
    const path = posix.join(below, entry.name);
    if (entry.isDirectory()) yield* filesOnHost(directory, path);
    else yield path;
  }
}

function gitModeOf(mode: number): PatchSide["gitMode"] {
  return (mode & 0o100) === 0 ? "100644" : "100755";
}

function linkSide(target: Buffer): PatchSide {
  return { gitMode: "120000", content: target };
}
