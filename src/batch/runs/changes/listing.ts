import { createHash } from "node:crypto";
import { posix } from "node:path";
import type { Engine, ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";

/** State of a path in a container. Two states with equal fields are the same file. */
export interface ListedPath {
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
export type Listing = ReadonlyMap<string, ListedPath>;

export interface ListingLimits {
  entries: number;
  /** Size of all contents, which are read and not kept. */
  bytes: number;
  /** Size of all paths and targets of links, which are kept. */
  nameBytes: number;
}

/**
 * Reads everything below a directory through the engine, which costs as much as the directory is large. Null beyond a
 * limit. Errors: the engine's.
 */
export async function readListing(
  engine: Pick<Engine, "readArchive">,
  { containerId, directory }: { containerId: string; directory: string },
  { limits, signal }: { limits: ListingLimits; signal?: AbortSignal | undefined },
): Promise<Listing | null> {
  const listing = new Map<string, ListedPath>();
  const archive = await engine.readArchive(containerId, directory, signal && { signal });
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
