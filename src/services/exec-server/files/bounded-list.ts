import { AnySignal } from "../../../lib/time/any-signal.js";
import type { DirectoryEntry, SandboxFiles } from "../../../sandbox/index.js";

export interface BoundedList {
  entries: DirectoryEntry[];
  /** The directory has more entries than these. */
  hasMore: boolean;
}

/** Lists at most `maxEntries` entries of a directory. If it has more, the runner is told to stop listing. */
export async function listAtMost(
  files: Pick<SandboxFiles, "list">,
  path: string,
  { maxEntries, signal }: { maxEntries: number; signal?: AbortSignal | undefined },
): Promise<BoundedList> {
  const enough = new AbortController();
  const entries: DirectoryEntry[] = [];
  const take = (found: DirectoryEntry[]) => {
    // Each name is a part of a frame from the runner. A copy does not keep the whole frame in memory.
    for (const entry of found.slice(0, maxEntries + 1 - entries.length))
      entries.push({ ...entry, nameBytes: Buffer.from(entry.nameBytes) });
    if (entries.length > maxEntries) enough.abort();
  };
  using stop = new AnySignal([signal, enough.signal]);
  try {
    await files.list(path, { onEntries: take, signal: stop.signal });
  } catch (error) {
    signal?.throwIfAborted();
    if (!enough.signal.aborted) throw error;
  }
  return { entries: entries.slice(0, maxEntries), hasMore: entries.length > maxEntries };
}
