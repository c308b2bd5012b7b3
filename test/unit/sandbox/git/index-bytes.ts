export const SHA1 = 20;
export const SHA256 = 32;
export const GITLINK = 0o160000;
const FILE = 0o100644;
export const EXTENDED = 0x4000;
export const LONG_NAME = 0xfff;

interface Entry {
  name: string | Buffer;
  mode?: number;
  flags?: number;
}

interface Given {
  version?: number;
  count?: number;
  hashBytes?: number;
  entries?: readonly Buffer[];
  extensions?: readonly Buffer[];
}

/** The bytes of an index, as git writes them, unless `given` says otherwise. */
export function index({
  version = 2,
  count,
  hashBytes = SHA1,
  entries = [],
  extensions = [],
}: Given = {}): Buffer {
  const head = Buffer.alloc(12);
  head.write("DIRC");
  head.writeUInt32BE(version, 4);
  head.writeUInt32BE(count ?? entries.length, 8);
  return Buffer.concat([head, ...entries, ...extensions, Buffer.alloc(hashBytes, 0xee)]);
}

function head({ mode = FILE, flags = 0 }: Entry, length: number, hashBytes: number): Buffer {
  // What is not looked at is no zero, so that a wrong offset is seen.
  const bytes = Buffer.alloc(40 + hashBytes + 2, 0x77);
  bytes.writeUInt32BE(mode, 24);
  bytes.writeUInt16BE(flags | Math.min(length, LONG_NAME), 40 + hashBytes);
  return bytes;
}

/** An entry of version 2 or 3: padded with zeros to a multiple of eight, with at least one. */
export function entry(given: Entry, hashBytes = SHA1): Buffer {
  const name = Buffer.from(given.name as string);
  const more = ((given.flags ?? 0) & EXTENDED) !== 0 ? Buffer.from([0x20, 0]) : Buffer.alloc(0);
  const content = Buffer.concat([head(given, name.length, hashBytes), more, name]);
  return Buffer.concat([content, Buffer.alloc(8 - (content.length % 8))]);
}

/** An entry of version 4, in which a name says how much of the one before is dropped. */
export function shortened(strip: number[], given: Entry): Buffer {
  const name = Buffer.from(given.name as string);
  return Buffer.concat([head(given, name.length, SHA1), Buffer.from(strip), name, Buffer.from([0])]);
}

export function extension(signature: string, content: Buffer, length = content.length): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.write(signature, "latin1");
  bytes.writeUInt32BE(length, 4);
  return Buffer.concat([bytes, content]);
}
