import { BrigError, isBrigError } from "../../../errors.js";
import { withFileErrors } from "../../os-error.js";
import type { ToolDirectoryEntry, ToolFiles } from "../../tool-sandbox.js";
import { FirstEntries, pathBytes, type TreeEntry, treeEntry } from "./entry-page.js";

export interface ListRequest {
  /** Absolute, as the caller wrote it. */
  path: string;
  offset: number;
  limit: number;
  depth: number;
}

interface TreeSource {
  files: ToolFiles;
  signal?: AbortSignal | undefined;
}

const BATCH = 32;

const suffixes: Readonly<Record<string, string>> = { file: "", directory: "/", symlink: "@" };

/** Returns one page of the sorted entries of a directory tree. `offset` counts from 1. */
export async function listTree(source: TreeSource, request: ListRequest): Promise<string> {
  const { path, offset, limit } = request;
  const first = await firstEntries(source, request);
  const header = `Absolute path: ${path}`;
  if (first.offered === 0) return header;
  if (offset > first.offered)
    throw new BrigError("offset exceeds directory entry count", { code: "tool.invalid-input" });
  const page = first.sorted().slice(offset - 1, offset - 1 + limit);
  const isMore = first.offered > offset - 1 + page.length;
  return [
    header,
    ...page.map(formatEntry),
    ...(isMore ? [`More than ${page.length} entries found`] : []),
  ].join("\n");
}

function formatEntry({ name, depth, type }: TreeEntry): string {
  return `${"  ".repeat(depth - 1)}${name}${suffixes[type] ?? "?"}`;
}

/**
 * Reads all entries up to the end of the page, level by level. A directory after the end of the page is not
 * read, since its entries sort after it. So memory is limited by the size of the page.
 */
async function firstEntries(source: TreeSource, { path, offset, limit, depth }: ListRequest) {
  const first = new FirstEntries(offset - 1 + limit);
  await offerEntries(source, path, { into: first, parent: null });
  for (let level = 1; level < depth; level++) {
    const directories = first.sorted().filter((entry) => entry.type === "directory" && entry.depth === level);
    if (directories.length === 0) break;
    for (let at = 0; at < directories.length; at += BATCH) {
      const some = directories.slice(at, at + BATCH).filter((directory) => first.admits(directory));
      await Promise.all(some.map((parent) => offerEntries(source, path, { into: first, parent })));
    }
  }
  return first;
}

async function offerEntries(
  { files, signal }: TreeSource,
  root: string,
  { into, parent }: { into: FirstEntries; parent: TreeEntry | null },
): Promise<void> {
  const path = parent === null ? root : Buffer.concat([Buffer.from(`${root}/`), pathBytes(parent)]);
  const onEntries = (entries: readonly ToolDirectoryEntry[]) => {
    for (const entry of entries) into.offer(treeEntry(entry, parent));
  };
  const list = async () => {
    try {
      await files.list(path, { signal, onEntries });
    } catch (error) {
      if (parent === null || !isGone(error)) throw error;
    }
  };
  await withFileErrors(list, "failed to read directory", { path: root, signal });
}

/** Whether something that was a directory a moment ago no longer is one. */
function isGone(error: unknown): boolean {
  return isBrigError(error, "file.not-found") || isBrigError(error, "file.not-directory");
}
