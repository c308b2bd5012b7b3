import { posix } from "node:path";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { ContainerChange } from "../../../sandbox/index.js";
import type { RecordedPlace } from "../place/never-started.js";
import { imageListing } from "./image-listings.js";
import { type ListedPath, type Listing, type ListingLimits, readListing } from "./listing.js";

const defaultLimits: ListingLimits = {
  entries: 200_000,
  bytes: 1024 ** 3,
  nameBytes: 32 * 1024 ** 2,
};

/** The engine mounts files of its own there, which it shows in a container that has run. */
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
    const after =
      directory === "/" ? null : await readListing(engine, { containerId, directory }, { limits, signal });
    const before = after && (await beforeAbort(imageListing(place, { imageId, directory }, limits), signal));
    if (after === null || before === null) return await engine.containerChanges(containerId, { signal });
    for (const change of differences(before, after)) found.push(change);
  }
  return found;
}

/** Leaves out directories that are below others. */
function topmost(directories: readonly string[]): string[] {
  const all = [...new Set(directories)];
  return all.filter((one) => !all.some((other) => other !== one && isBelow(one, other)));
}

function isBelow(path: string, directory: string): boolean {
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
