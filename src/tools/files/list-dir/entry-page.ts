import { cutText } from "../../../sandbox/index.js";
import type { ToolDirectoryEntry } from "../../tool-sandbox.js";

const MAX_NAME_BYTES = 500;

export interface TreeEntry {
  nameBytes: Uint8Array;
  /** Null for entries of the listed directory itself. */
  parent: TreeEntry | null;
  /** The path below the listed directory, with one character per byte of UTF-8, so that it sorts by bytes. */
  key: string;
  /** The part of the key by which entries are sorted. */
  sortKey: string;
  name: string;
  /** 1 for entries of the listed directory itself. */
  depth: number;
  type: string;
}

export function treeEntry({ nameBytes, type }: ToolDirectoryEntry, parent: TreeEntry | null): TreeEntry {
  const text = Buffer.from(nameBytes.buffer, nameBytes.byteOffset, nameBytes.byteLength).toString("utf8");
  const isAscii = text.length === Buffer.byteLength(text);
  const ownKey = isAscii ? text : Buffer.from(text).toString("latin1");
  const key = parent === null ? ownKey : `${parent.key}/${ownKey}`;
  return {
    nameBytes,
    parent,
    key,
    sortKey: key.length <= MAX_NAME_BYTES ? key : cutKey(key),
    name: cutText(text, MAX_NAME_BYTES),
    depth: parent === null ? 1 : parent.depth + 1,
    type,
  };
}

function cutKey(key: string): string {
  const text = Buffer.from(key, "latin1").toString("utf8");
  return Buffer.from(cutText(text, MAX_NAME_BYTES)).toString("latin1");
}

/** The path below the listed directory. */
export function pathBytes({ nameBytes, parent }: TreeEntry): Buffer {
  return parent === null
    ? Buffer.from(nameBytes)
    : Buffer.concat([pathBytes(parent), Buffer.from("/"), nameBytes]);
}

/** Keeps the first entries in sort order. At most twice as many are in memory at a time. */
export class FirstEntries {
  readonly #capacity: number;
  #entries: TreeEntry[] = [];
  /** Entries after this one are not among the first. Null until some had to be dropped. */
  #last: TreeEntry | null = null;
  #offered = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The number of all entries, kept or not. */
  get offered(): number {
    return this.#offered;
  }

  offer(entry: TreeEntry): void {
    this.#offered++;
    if (!this.admits(entry)) return;
    this.#entries.push(entry);
    if (this.#entries.length >= this.#capacity * 2) this.sorted();
  }

  /** Whether the entry can still be among the first. */
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
  return one.depth - other.depth || Buffer.compare(pathBytes(one), pathBytes(other));
}
