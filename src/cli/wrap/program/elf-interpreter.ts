const PT_INTERP = 3;
const HEADER_BYTES = 64;
const MAX_PATH_BYTES = 4096;

/**
 * The loader that a program for 64-bit Linux asks for, e.g. `/lib64/ld-linux-x86-64.so.2`; null for a static one.
 * Undefined if the bytes, the first ones of a file, are not the start of such a program.
 */
export function elfInterpreter(start: Buffer): string | null | undefined {
  const isElf64 = start.length >= HEADER_BYTES && start.readUInt32BE(0) === 0x7f454c46 && start[4] === 2;
  if (!isElf64 || start[5] !== 1) return undefined;
  const tableOffset = Number(start.readBigUInt64LE(32));
  const entryBytes = start.readUInt16LE(54);
  const entries = start.readUInt16LE(56);
  for (let index = 0; index < entries; index++) {
    const at = tableOffset + index * entryBytes;
    if (at + 40 > start.length) return undefined;
    if (start.readUInt32LE(at) !== PT_INTERP) continue;
    const offset = Number(start.readBigUInt64LE(at + 8));
    const length = Number(start.readBigUInt64LE(at + 32));
    if (length > MAX_PATH_BYTES || offset + length > start.length) return undefined;
    return start.toString("utf8", offset, offset + length).replace(/\0+$/, "");
  }
  return null;
}
