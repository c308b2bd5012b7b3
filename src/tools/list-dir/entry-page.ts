import { cutText } from "../cut-text.js";
import type { ToolDirectoryEntry } from "../sandbox.js";

const MAX_NAME_BYTES = 500;

/** An entry of a tree, by its path from the listing's start. */
export interface TreeEntry {
  path: Buffer;
  /** What it is sorted by and printed as need not be all of it. */
  sortKey: string;
  name: string;
  /** 1 for what is directly in the listed directory. */
  depth: number;
  type: string;
}

export function treeEntry(entry: ToolDirectoryEntry, parent: TreeEntry | null): TreeEntry {
  const path =
    parent === null
      ? Buffer.from(entry.nameBytes)
      : Buffer.concat([parent.path, Buffer.from("/"), entry.nameBytes]);
  return {
    path,
    // One character per byte of its UTF-8, so that comparing strings compares bytes.
    sortKey: Buffer.from(shortText(path)).toString("latin1"),
    name: shortText(entry.nameBytes),
    depth: (parent?.depth ?? 0) + 1,
    type: entry.type,
  };
}

function shortText(bytes: Uint8Array): string {
  return cutText(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"),
    MAX_NAME_BYTES,
  );
}

/** The first entries, in order, of any number that are offered: at most twice as many are held at a time. */
export class FirstEntries {
  readonly #capacity: number;
  #entries: TreeEntry[] = [];
  /** Known once some had to go: nothing behind it is among the first. */
  #last: TreeEntry | null = null;
  #offered = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** How many there are in all, kept or not. */
  get offered(): number {
    return this.#offered;
  }

  offer(entry: TreeEntry): void {
    this.#offered++;
    if (!this.admits(entry)) return;
    this.#entries.push(entry);
    if (this.#entries.length >= this.#capacity * 2) this.sorted();
  }

  /** Whether an entry is, or could come to be, among the first. */
  admits(entry: TreeEntry): boolean {
    return this.#last === null || inOrder(entry, this.#last) <= 0;
  }

  sorted(): readonly TreeEntry[] {
    this.#entries.sort(inOrder);
    if (this.#entries.length > this.#capacity) {
      this.#entries.length = this.#capacity;
      this.#last = this.#entries.at(-1) ?? null;
    }
    return this.#entries;
  }
}

function inOrder(one: TreeEntry, other: TreeEntry): number {
  if (one.sortKey !== other.sortKey) return one.sortKey < other.sortKey ? -1 : 1;
  return one.depth - other.depth || Buffer.compare(one.path, other.path);
}
