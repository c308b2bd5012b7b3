import { createHash } from "node:crypto";
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { beforeAbort } from "../../lib/time/before-abort.js";
import type { ContainerChange, Engine, ReceivedEntry } from "../../sandbox/index.js";
import { readTar } from "../../sandbox/index.js";
import { ImageFiles } from "./place/image-files.js";
import type { RecordedPlace } from "./place/never-started.js";

const defaultLimits: ListingLimits = {
  entries: 200_000,
  bytes: 1024 ** 3,
  nameBytes: 32 * 1024 ** 2,
};

/** Files that the engine mounts itself. It lists them as changes of a container that has run, though the agent has not touched them. */
const MOUNTED = new Set(["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"]);

export interface ChangesBelow {
  containerId: string;
  /** Image that the container was made from. */
  imageId: string;
  /** Absolute paths in the container. */
  directories: readonly string[];
  /** Directories that brig made, in which nothing is. They need not be read. */
  empty?: readonly { path: string }[] | undefined;
  limits?: ListingLimits | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Finds the differences from the image in or below some directories of a stopped container, by content, with only the
 * topmost path of each deletion. The engine's own answer would compare every file of the image each time: it is used
 * only for directories beyond a limit, and may then have changes elsewhere too. Errors: the engine's.
 */
export async function changesBelow(place: RecordedPlace, request: ChangesBelow): Promise<ContainerChange[]> {
  const { engine } = place;
  const { containerId, imageId, limits = defaultLimits, signal = new AbortController().signal } = request;
  const directories = topmost(request.directories);
  const empty = new Set(request.empty?.map(({ path }) => path));
  const found: ContainerChange[] = [];
  for (const directory of directories) {
    if (empty.has(directory)) {
      found.push({ kind: "added", path: directory });
      continue;
    }
    const read = async () => await engine.readArchive(containerId, directory, { signal });
    const after = directory === "/" ? null : await readListing(await read(), directory, { limits, signal });
    const before = after && (await beforeAbort(imageListing(place, { imageId, directory }, limits), signal));
    if (after === null || before === null) return await engine.containerChanges(containerId, { signal });
    for (const change of differences(before, after)) found.push(change);
  }
  return found;
}

/** Leaves out directories that are below others. */
export function topmost(directories: readonly string[]): string[] {
  const all = [...new Set(directories)];
  return all.filter((one) => !all.some((other) => other !== one && isBelow(one, other)));
}

export function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

function* differences(before: Listing, after: Listing): Generator<ContainerChange> {
  for (const [path, now] of after) {
    if (MOUNTED.has(path)) continue;
    const was = before.get(path);
    if (was === undefined) yield { kind: "added", path };
    else if (!isSame(was, now)) yield { kind: "changed", path };
  }
  for (const path of before.keys()) {
    if (after.has(path) || MOUNTED.has(path)) continue;
    const parent = posix.dirname(path);
    if (after.has(parent) || !before.has(parent)) yield { kind: "deleted", path };
  }
}

function isSame(one: ListedPath, other: ListedPath): boolean {
  return (
    one.kind === other.kind &&
    one.mode === other.mode &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.target === other.target &&
    one.sha256 === other.sha256
  );
}

/** All that are kept have at most so many entries together, besides the last one. */
const MAX_KEPT_ENTRIES = 400_000;

type Reading = Promise<Listing | null>;

/** Listings of images, by engine. Images never change, so each is read once for all attempts of a process. */
const ofEngines = new WeakMap<Engine, Map<string, Reading>>();

/** Reads a directory of an image, unless that was done before. Null beyond a limit. Errors: the engine's. */
function imageListing(
  place: RecordedPlace,
  { imageId, directory }: { imageId: string; directory: string },
  limits: ListingLimits,
): Reading {
  const { engine } = place;
  const kept = ofEngines.get(engine) ?? new Map<string, Reading>();
  ofEngines.set(engine, kept);
  const key = `${imageId} ${directory}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const reading = readImage(place, { imageId, directory }, limits);
  kept.set(key, reading);
  const forget = () => void kept.delete(key);
  void reading.then(() => dropOldest(kept, key), forget);
  return reading;
}

async function readImage(
  place: RecordedPlace,
  { imageId, directory }: { imageId: string; directory: string },
  limits: ListingLimits,
): Reading {
  await using image = new ImageFiles(place, imageId);
  return await readListing(await image.read(directory), directory, { limits });
}

async function dropOldest(kept: Map<string, Reading>, last: string): Promise<void> {
  const sizes = await Promise.all(
    [...kept].map(async ([key, reading]) => ({ key, size: (await reading.catch(() => null))?.size ?? 0 })),
  );
  let total = sizes.reduce((sum, { size }) => sum + size, 0);
  for (const { key, size } of sizes) {
    if (total <= MAX_KEPT_ENTRIES) return;
    if (key === last) continue;
    kept.delete(key);
    total -= size;
  }
}

/** State of a path in a container. Two states with equal fields are the same file. */
interface ListedPath {
  kind: "file" | "directory" | "symbolic-link" | "special";
  mode: number;
  uid: number;
  gid: number;
  /** Target of a link. */
  target: string | null;
  /** Checksum of a file's content. */
  sha256: string | null;
}

/** Paths by their absolute names in the container. Empty if there is no such directory. */
type Listing = ReadonlyMap<string, ListedPath>;

interface ListingLimits {
  entries: number;
  /** Size of all contents, which are read and not kept. */
  bytes: number;
  /** Size of all paths and targets of links, which are kept. */
  nameBytes: number;
}

/**
 * Reads the archive of a directory of a container, which costs as much as the directory is large. Null beyond a limit. Errors: the
 * engine's.
 */
async function readListing(
  archive: Readable | null,
  directory: string,
  { limits, signal }: { limits: ListingLimits; signal?: AbortSignal | undefined },
): Promise<Listing | null> {
  const listing = new Map<string, ListedPath>();
  if (archive === null) return listing;
  const pathOf = (name: string) => posix.join(directory, "..", name).replace(/(.)\/$/, "$1");
  let [bytes, nameBytes] = [0, 0];
  for await (const entry of readTar(archive)) {
    signal?.throwIfAborted();
    bytes += entry.sizeBytes;
    nameBytes += Buffer.byteLength(entry.path) + Buffer.byteLength(entry.target ?? "");
    if (listing.size >= limits.entries || bytes > limits.bytes || nameBytes > limits.nameBytes) return null;
    listing.set(pathOf(entry.path), await listed(entry, (target) => listing.get(pathOf(target))));
  }
  return listing;
}

async function listed(
  entry: ReceivedEntry,
  before: (target: string) => ListedPath | undefined,
): Promise<ListedPath> {
  const { kind, mode, uid, gid, target } = entry;
  // A further name of a file that stands in the archive already.
  if (kind === "hard-link") {
    const sha256 = before(target ?? "")?.sha256 ?? null;
    return { kind: "file", mode, uid, gid, target: null, sha256 };
  }
  const sha256 = kind === "file" ? await hashOf(entry.content) : null;
  return { kind, mode, uid, gid, target, sha256 };
}

async function hashOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of content) hash.update(chunk);
  return hash.digest("base64");
}
