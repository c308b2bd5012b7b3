/** The facts that matter from an index, git's list of tracked files. */
export interface GitIndex {
  /** Paths of submodules, relative to the work tree. */
  gitlinks: string[];
  /** Tracked files named HEAD in a subdirectory, relative to the work tree. */
  heads: string[];
  /** The name of the file with the remaining entries if the index is split. */
  sharedIndex: string | null;
  /** A single entry may represent a whole directory, so submodules may be missing. */
  isSparse: boolean;
}

const HEADER_BYTES = 12;
/** An entry begins with ten 32-bit numbers, then has the object's hash, then flags. */
const STAT_BYTES = 40;
const MODE_OFFSET = 24;
const TYPE_MASK = 0o170000;
const GITLINK = 0o160000;
const REGULAR = 0o100000;
const INODE_OFFSET = 20;
const EXTENDED = 0x4000;
const LONG_NAME = 0x0fff;

/** A tracked file as git's index records it, to tell later whether it has changed. */
export interface IndexedFile {
  /** The path relative to the work tree. */
  path: string;
  changedSeconds: number;
  changedNanoseconds: number;
  /** The lower 32 bits. */
  ino: number;
}

/**
 * Parses gitformat-index(5), versions 2 to 4. `hashBytes` is 20 for SHA-1, 32 for SHA-256. Null for what git
 * would refuse as well: no index, or a truncated one. `onFile` is called with each tracked file.
 */
export function parseGitIndex(
  bytes: Buffer,
  hashBytes: number,
  onFile?: (file: IndexedFile) => void,
): GitIndex | null {
  if (bytes.length < HEADER_BYTES + hashBytes || bytes.toString("latin1", 0, 4) !== "DIRC") return null;
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return null;
  const index: GitIndex = { gitlinks: [], heads: [], sharedIndex: null, isSparse: false };
  const end = bytes.length - hashBytes;
  const entriesEnd = readEntries(
    { bytes, end, hashBytes, version, count: bytes.readUInt32BE(8), onFile },
    index,
  );
  if (entriesEnd === null) return null;
  readExtensions({ bytes, at: entriesEnd, end, hashBytes }, index);
  return index;
}

interface Entries {
  bytes: Buffer;
  end: number;
  hashBytes: number;
  version: number;
  count: number;
  onFile: ((file: IndexedFile) => void) | undefined;
}

/** Returns the offset where the entries end, or null when they are truncated. */
function readEntries(
  { bytes, end, hashBytes, version, count, onFile }: Entries,
  index: GitIndex,
): number | null {
  let at = HEADER_BYTES;
  let previous: Buffer = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry++) {
    const statAt = at;
    const flagsAt = at + STAT_BYTES + hashBytes;
    if (flagsAt + 2 > end) return null;
    const flags = bytes.readUInt16BE(flagsAt);
    const nameAt = flagsAt + ((flags & EXTENDED) !== 0 && version >= 3 ? 4 : 2);
    const mode = bytes.readUInt32BE(at + MODE_OFFSET);
    let name: Buffer;
    if (version === 4) {
      const strip = readVarint(bytes, nameAt, end);
      const nameEnd = strip === null ? -1 : bytes.indexOf(0, strip.next);
      if (strip === null || nameEnd < 0 || nameEnd >= end || strip.value > previous.length) return null;
      name = Buffer.concat([
        previous.subarray(0, previous.length - strip.value),
        bytes.subarray(strip.next, nameEnd),
      ]);
      previous = name;
      at = nameEnd + 1;
    } else {
      const length = flags & LONG_NAME;
      const nameEnd = length < LONG_NAME ? nameAt + length : bytes.indexOf(0, nameAt);
      if (nameEnd < nameAt || nameEnd >= end) return null;
      name = bytes.subarray(nameAt, nameEnd);
      at += Math.floor((nameEnd - at + 8) / 8) * 8;
    }
    addEntry(name, mode, index);
    if (onFile !== undefined && (mode & TYPE_MASK) === REGULAR) onFile(indexedFile(bytes, statAt, name));
  }
  return at;
}

function indexedFile(bytes: Buffer, at: number, name: Buffer): IndexedFile {
  return {
    path: name.toString("latin1"),
    changedSeconds: bytes.readUInt32BE(at),
    changedNanoseconds: bytes.readUInt32BE(at + 4),
    ino: bytes.readUInt32BE(at + INODE_OFFSET),
  };
}

function addEntry(name: Buffer, mode: number, index: GitIndex): void {
  const type = mode & TYPE_MASK;
  if (type === GITLINK) index.gitlinks.push(name.toString("latin1"));
  else if (endsInHead(name)) index.heads.push(name.toString("latin1"));
}

/** Compares bytes before it decodes: an index may list a million files. */
function endsInHead(name: Buffer): boolean {
  const { length } = name;
  return (
    length > 5 &&
    name[length - 1] === 0x44 &&
    name[length - 5] === 0x2f &&
    name.toString("latin1", length - 4) === "HEAD"
  );
}

interface Extensions {
  bytes: Buffer;
  at: number;
  end: number;
  hashBytes: number;
}

function readExtensions({ bytes, at: start, end, hashBytes }: Extensions, index: GitIndex): void {
  for (let at = start; at + 8 <= end; ) {
    const signature = bytes.toString("latin1", at, at + 4);
    const length = bytes.readUInt32BE(at + 4);
    if (signature === "sdir") index.isSparse = true;
    if (signature === "link" && length >= hashBytes) {
      const name = bytes.toString("hex", at + 8, at + 8 + hashBytes);
      if (/[^0]/.test(name)) index.sharedIndex = `sharedindex.${name}`;
    }
    at += 8 + length;
  }
}

/** Reads a variable-length number of version 4, encoded as in pack files. */
function readVarint(bytes: Buffer, start: number, end: number): { value: number; next: number } | null {
  let at = start;
  let byte = at < end ? (bytes[at++] ?? 0) : -1;
  let value = byte & 127;
  while (byte >= 128) {
    if (at >= end || value > 0xffffff) return null;
    byte = bytes[at++] ?? 0;
    value = (value + 1) * 128 + (byte & 127);
  }
  return byte < 0 ? null : { value, next: at };
}
